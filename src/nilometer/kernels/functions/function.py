"""A SQL function: its operands, its result type, and how it is computed over columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.arrays import Bools
from nilometer.kernels.attempt import attempt
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.expression_types import type_name
from nilometer.kernels.function_types import cast_type, is_local_cast, is_text
from nilometer.model.names import count

MOST: Final = 1 << 20
"""The largest value that a function may produce, in characters, bytes or items."""

Accept: TypeAlias = Callable[[pa.DataType], pa.DataType | None]
"""Maps the type of a value to that in which a function takes it; None: it does not."""


class _NoConstant:
    """The value of an operand that is not a literal of the statement."""


NO_CONSTANT: Final = _NoConstant()


@dataclass(frozen=True)
class Operand:
    """What is known about an operand before any rows."""

    kind: pa.DataType
    constant: Any = NO_CONSTANT


@dataclass(frozen=True)
class Applied:
    """A function's operands for all rows, in the types that it takes."""

    columns: Sequence[pa.Array]
    size: int
    kind: pa.DataType
    """The type of its result."""
    zone: str
    constants: Sequence[Any]

    def present(self) -> Bools:
        """The rows in which no operand is NULL."""
        present = np.ones(self.size, np.bool_)
        for column in self.columns:
            if column.null_count:
                present &= column.is_valid().to_numpy(zero_copy_only=False)
        return present


Give: TypeAlias = Callable[[Sequence[Operand]], pa.DataType]
Check: TypeAlias = Callable[[Any], object]


@dataclass(frozen=True)
class Function:
    """A function: a row of the table."""

    takes: tuple[Accept, ...]
    gives: pa.DataType | Give
    """The result type, or what computes it; that may raise an UnavailableError."""
    evaluate: Callable[[Applied], pa.Array]
    optional: int = 0
    """How many of the last operands may be omitted."""
    several: bool = False
    """Whether the last operand may be repeated."""
    literals: Mapping[int, Check] = field(default_factory=dict)
    """Operands that must be literals; their checks raise an UnavailableError if unsupported."""
    local: bool = False
    """Whether it depends on the session's time zone."""


def type_of_call(
    name: str, function: Function, operands: Sequence[Operand], zone: str
) -> pa.DataType:
    """The result type of a function for these operands."""
    _require_number(name, function, len(operands))
    taken = taken_types(function, [one.kind for one in operands])
    for number, (one, kind) in enumerate(zip(operands, taken, strict=True), start=1):
        if kind is None:
            raise _untaken(name, one.kind, number, len(operands))
    casts = any(is_local_cast(one.kind, kind) for one, kind in zip(operands, taken, strict=True))
    if (function.local or casts) and not zone:
        raise UnavailableError(f"{name.upper()} is not available here in the session's time zone")
    for place, check in function.literals.items():
        if place < len(operands):
            _check_literal(name, operands[place], check)
    known = [Operand(k, one.constant) for one, k in zip(operands, taken, strict=True)]
    result = function.gives(known) if callable(function.gives) else function.gives
    if not zone and pat.is_timestamp(result) and any(pat.is_date32(one.kind) for one in known):
        raise UnavailableError(f"{name.upper()} of dates and times is not available here")
    return result


_OF_INTERVALS: Final = "timestampdiff(SECOND, a, b) is the number of seconds between two times"


def _untaken(name: str, kind: pa.DataType, number: int, operands: int) -> UnavailableError:
    what = f"of {type_name(kind)} values"
    if operands > 1:
        what = f"with {type_name(kind)} as argument {number}"
    hint = _OF_INTERVALS if pat.is_duration(kind) else None
    return UnavailableError(f"{name.upper()} {what} is not available here", hint=hint)


def taken_types(function: Function, kinds: Sequence[pa.DataType]) -> list[pa.DataType | None]:
    """The types in which a function takes operands of these types."""
    takes = list(function.takes)
    while function.several and len(takes) < len(kinds):
        takes.append(takes[-1])
    return [accept(kind) for accept, kind in zip(takes, kinds, strict=False)]


def apply_function(
    name: str,
    function: Function,
    columns: Sequence[pa.Array],
    size: int,
    zone: str,
    constants: Sequence[Any],
) -> pa.Array:
    """The values of a function for all rows."""
    operands = [Operand(one.type, c) for one, c in zip(columns, constants, strict=True)]
    kind = type_of_call(name, function, operands, zone)
    taken = taken_types(function, [one.type for one in columns])
    cast = [cast_values(one, to, zone) for one, to in zip(columns, taken, strict=True)]
    return as_type(function.evaluate(Applied(cast, size, kind, zone, constants)), kind)


def _require_number(name: str, function: Function, got: int) -> None:
    maximum = len(function.takes)
    if maximum - function.optional <= got and (got <= maximum or function.several):
        return
    minimum = maximum - function.optional
    takes = (
        count(maximum, "argument") if minimum == maximum else f"{minimum} to {maximum} arguments"
    )
    if name in ("date_diff", "datediff"):
        takes += "; timestampdiff(MINUTE, a, b) counts whole minutes"
    if function.several:
        takes = f"at least {count(minimum, 'argument')}"
    raise PredicateError(f"{name.upper()} got {count(got, 'argument')}", detail=f"it takes {takes}")


def _check_literal(name: str, operand: Operand, check: Check) -> None:
    if isinstance(operand.constant, _NoConstant):
        raise UnavailableError(
            f"{name.upper()} with a computed pattern, format or unit is not available here",
            hint="write it as a text in quotes, or a number",
        )
    if operand.constant is not None:
        check(operand.constant)


def too_large(name: str) -> PredicateError:
    """The error for a value that would be too large."""
    return PredicateError(
        f"the result of {name} would be too large",
        detail=f"the result of a function has at most {MOST} characters, bytes or items",
        hint="make it shorter",
    )


# The operand types of functions


def text(kind: pa.DataType) -> pa.DataType | None:
    """A string, or a value that is converted to one."""
    return pa.string() if is_text(kind) or cast_type(kind, pa.string()) else None


def plain_text(kind: pa.DataType) -> pa.DataType | None:
    """Only a string."""
    return pa.string() if is_text(kind) or pat.is_null(kind) else None


def int32(kind: pa.DataType) -> pa.DataType | None:
    """An INT, or a value that fits into one; a string is parsed."""
    small = kind in (pa.int8(), pa.int16(), pa.int32())
    return pa.int32() if small or is_text(kind) or pat.is_null(kind) else None


def int64(kind: pa.DataType) -> pa.DataType | None:
    """A whole number; a string is parsed."""
    is_whole = pat.is_signed_integer(kind) or is_text(kind) or pat.is_null(kind)
    return pa.int64() if is_whole else None


def double(kind: pa.DataType) -> pa.DataType | None:
    """A number; a string is parsed."""
    is_number = pat.is_signed_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)
    return pa.float64() if is_number or is_text(kind) or pat.is_null(kind) else None


def number(kind: pa.DataType) -> pa.DataType | None:
    """A number, unchanged."""
    is_number = pat.is_signed_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)
    return kind if is_number or pat.is_null(kind) else None


def bytes_of(kind: pa.DataType) -> pa.DataType | None:
    """Bytes, or a string as its bytes."""
    is_usable = is_text(kind) or pat.is_binary(kind) or pat.is_null(kind)
    return pa.binary() if is_usable else None


def text_or_bytes(kind: pa.DataType) -> pa.DataType | None:
    """Bytes, or a string."""
    return pa.binary() if pat.is_binary(kind) else text(kind)


def day(kind: pa.DataType) -> pa.DataType | None:
    """A date, the date of an instant, or a string that is parsed as one."""
    usable = pat.is_date32(kind) or _is_instant(kind) or is_text(kind) or pat.is_null(kind)
    return pa.date32() if usable else None


def instant(kind: pa.DataType) -> pa.DataType | None:
    """An instant, the start of a date, or a string that is parsed as one."""
    usable = pat.is_date32(kind) or _is_instant(kind) or is_text(kind) or pat.is_null(kind)
    return pa.timestamp("us", tz="UTC") if usable else None


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pat.is_timestamp(kind) and kind.tz)


def anything(kind: pa.DataType) -> pa.DataType | None:
    """Any value, unchanged."""
    return kind


# How functions are computed


def each(function: Callable[..., Any]) -> Callable[[Applied], pa.Array]:
    """Compute value by value, where no operand is NULL."""

    def run(applied: Applied) -> pa.Array:
        if not applied.columns:
            return pa.array([function()] * applied.size, applied.kind)
        rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
        values = [None if any(v is None for v in row) else function(*row) for row in rows]
        return pa.array(values, applied.kind)

    return run


def over(function: Callable[..., Any]) -> Callable[[Applied], pa.Array]:
    """Compute by a function of Arrow columns that handles NULLs itself."""
    return lambda applied: function(*applied.columns)


def numpy_of(function: Callable[..., Any]) -> Callable[[Applied], pa.Array]:
    """Compute by a function of numpy arrays; NULL where an operand is."""

    def run(applied: Applied) -> pa.Array:
        present = applied.present()
        if any(pat.is_null(column.type) for column in applied.columns):
            return pa.nulls(applied.size, applied.kind)
        arrays = [column.fill_null(0).to_numpy(zero_copy_only=False) for column in applied.columns]
        with np.errstate(all="ignore"):
            values = function(*arrays)
        return pa.array(values, mask=~present).cast(applied.kind)

    return run


def tried(evaluate: Callable[[Applied], pa.Array]) -> Callable[[Applied], pa.Array]:
    """The same function, with NULL in rows for which it fails."""

    def run(applied: Applied) -> pa.Array:
        def work(columns: Sequence[pa.Array], size: int) -> pa.Array:
            return evaluate(replace(applied, columns=columns, size=size))

        return attempt(work, applied.columns, applied.size, applied.kind)

    return run
