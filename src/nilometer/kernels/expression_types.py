"""Types by Spark's (ANSI) rules: of literals, common types, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.function_types import is_text
from nilometer.model.expressions import Interval

INTERVAL: Final = pa.duration("us")
INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def constant_type(value: object) -> pa.DataType:
    """The type that Spark gives to a literal."""
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
        case float():
            return pa.float64()
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return pa.decimal128(max(len(digits), scale, 1), scale)
        case Interval():
            return INTERVAL
        case datetime():
            return pa.timestamp("us", tz="UTC")
        case date():
            return pa.date32()
        case _:
            return pa.string()


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which values of two types are compared, if there is one."""
    if left == right:
        return left
    if pat.is_null(left) or pat.is_null(right):
        return right if pat.is_null(left) else left
    if is_text(left) and is_text(right):
        return left
    if pat.is_timestamp(left) and pat.is_timestamp(right) and bool(left.tz) == bool(right.tz):
        return left
    if not (is_number(left) and is_number(right)):
        return None
    if left in INTEGERS and right in INTEGERS:
        return max(left, right, key=INTEGERS.index)
    if pat.is_floating(left) or pat.is_floating(right):
        return pa.float64()
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    return decimal_type(
        max(left.precision - left.scale, right.precision - right.scale) + scale, scale
    )


def moment_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of a date or an instant compared with a text, which is parsed as one.

    A date compared with an instant is the midnight with which it begins.
    """
    for other, kind in ((left, right), (right, left)):
        is_instant = pat.is_timestamp(kind) and bool(kind.tz)
        if (is_text(other) and (pat.is_date32(kind) or is_instant)) or (
            pat.is_date32(other) and is_instant
        ):
            return kind
    return None


def common_of_all(kinds: Sequence[pa.DataType], what: str) -> pa.DataType:
    """The common type of several types; `what` names the values in error messages."""
    both: pa.DataType | None = kinds[0]
    for kind in kinds[1:]:
        both = None if both is None else common_type(both, kind)
    if both is None:
        names = ", ".join(sorted({type_name(kind) for kind in kinds}))
        raise PredicateError(f"{what} have different types", detail=f"got {names}")
    return both


def chosen_type(kinds: Sequence[pa.DataType], what: str, zone: str) -> pa.DataType:
    """The type of a value that is chosen among some: a date among instants is one."""
    known = {kind for kind in kinds if not pat.is_null(kind)}
    instants = {kind for kind in known if pat.is_timestamp(kind) and kind.tz}
    if not instants or known - instants != {pa.date32()}:
        return common_of_all(kinds, what)
    if not zone:
        raise UnavailableError(
            f"{what} mix dates and times, which is not available here in the session's time zone",
            hint="cast the dates: CAST(d AS TIMESTAMP)",
        )
    return common_of_all(sorted(instants, key=str), what)


def signed_type(kind: pa.DataType, what: str) -> pa.DataType:
    """The type of a negated value."""
    if is_number(kind) or kind == INTERVAL or pat.is_null(kind):
        return kind
    raise PredicateError(f"{what} needs a number or an interval", detail=f"got {type_name(kind)}")


def is_number(kind: pa.DataType) -> bool:
    return kind in INTEGERS or pat.is_floating(kind) or pat.is_decimal(kind)


def is_integer(kind: pa.DataType) -> bool:
    return kind in INTEGERS


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that can hold every value of an integer type."""
    return kind if pat.is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The decimal type with this many digits, if there is one."""
    if precision > 38:
        raise UnavailableError(
            "a DECIMAL result would need more than 38 digits",
            hint="cast one part to DOUBLE: CAST(x AS DOUBLE)",
        )
    return pa.decimal128(precision, scale)


def field_place(kind: pa.DataType, name: str) -> int:
    """The position of a struct's field, named in any case unless that is ambiguous."""
    names = [kind.field(i).name for i in range(kind.num_fields)] if pat.is_struct(kind) else []
    same = [i for i, known in enumerate(names) if known == name]
    same = same or [i for i, known in enumerate(names) if known.lower() == name.lower()]
    if len(same) != 1:
        fields = f"it has {', '.join(names)}" if names else f"it is {type_name(kind)}"
        raise PredicateError(f"there is no field {name}", detail=fields)
    return same[0]


def type_name(kind: pa.DataType) -> str:
    """The name of a type in Spark."""
    names = {
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.date32(): "DATE",
        pa.null(): "NULL",
        INTERVAL: "INTERVAL",
    }
    if kind in names:
        return names[kind]
    if pat.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pat.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pat.is_struct(kind):
        fields = (
            f"{kind.field(i).name}: {type_name(kind.field(i).type)}" for i in range(len(kind))
        )
        return f"STRUCT<{', '.join(fields)}>"
    if pat.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pat.is_list(kind) or pat.is_large_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return "BINARY"
    return "STRING" if is_text(kind) else str(kind).upper()
