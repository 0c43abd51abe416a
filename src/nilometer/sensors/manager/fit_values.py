"""Converts values from sensors to the declared types; values that do not fit have a reason.

Nothing is guessed: numbers are numbers, never text that looks like one; text is text. A TIMESTAMP
is a datetime, or what its form specifies: a number since 1970, ISO 8601 text (UTC if it names no
zone), a text that follows a pattern; a DATE is a date or ISO text. A whole number may be written
3.0. An ARRAY is a list (or tuple, or numpy array) of such values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from nilometer.model.time_forms import TimeForm

Refusals: TypeAlias = dict[int, str]
"""Why values do not fit, by position."""
_SHOWN: Final = 60


class _MisfitError(Exception):
    """A value that does not fit, and why."""


def fit_values(
    values: Sequence[Any], kind: pa.DataType, form: TimeForm
) -> tuple[pa.Array, Refusals]:
    """The values as an array, NULL where one does not fit."""
    ready = _READY.get(kind.id)
    if ready is not None and ready.issuperset(map(type, values)):
        try:
            return _finite(pa.array(values, kind)), {}
        except (ValueError, OverflowError, _MisfitError):
            pass  # some value does not fit: check each one
    if types.is_list(kind):
        return _fit_lists(values, kind, form)
    return _fit_each(values, kind, form)


def fit_array(column: pa.Array, kind: pa.DataType, form: TimeForm) -> tuple[pa.Array, Refusals]:
    """A column of a record batch as an array of the declared type."""
    if column.type == kind:
        return column, {}
    if types.is_null(column.type):
        return pa.nulls(len(column), kind), {}
    if _alike(column.type, kind):
        try:
            return column.cast(kind, safe=True), {}
        except pa.ArrowInvalid:
            pass  # some value does not fit: check each one
    return fit_values(column.to_pylist(), kind, form)


def _alike(actual: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow's own cast behaves as promised above."""
    if types.is_list(kind):
        return types.is_list(actual) and _alike(actual.value_type, kind.value_type)
    if types.is_floating(kind):
        wide = types.is_floating(actual) and kind == pa.float64()
        return bool(types.is_integer(actual) or wide)
    if types.is_integer(kind):
        return bool(types.is_integer(actual))
    if types.is_timestamp(kind):
        return bool(types.is_timestamp(actual))
    text = (types.is_string, types.is_large_string, types.is_dictionary)
    return types.is_string(kind) and any(one(actual) for one in text)


def _finite(array: pa.Array) -> pa.Array:
    """Refuse an array in which a value has become infinite."""
    if array.type == pa.float32() and np.isinf(array.to_numpy(zero_copy_only=False)).any():
        raise _MisfitError
    return array


def _fit_lists(
    values: Sequence[Any], kind: pa.DataType, form: TimeForm
) -> tuple[pa.Array, Refusals]:
    """Convert the items of all arrays at once; an array with a misfit is NULL."""
    refused: Refusals = {}
    items: list[Any] = []
    owners: list[int] = []
    ends = [0]
    for at, value in enumerate(values):
        if isinstance(value, list | tuple | np.ndarray):
            items.extend(value.tolist() if isinstance(value, np.ndarray) else value)
            owners.extend([at] * len(value))
        elif value is not None:
            refused[at] = f"not an array: {_value_text(value)}"
        ends.append(len(items))
    fitted, misfits = fit_values(items, kind.value_type, form)
    for place, reason in misfits.items():
        at = owners[place]
        refused.setdefault(at, f"item {place - ends[at] + 1}: {reason}")
    nulls = [value is None or at in refused for at, value in enumerate(values)]
    whole = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), fitted, kind)
    return pc.if_else(pa.array(nulls, pa.bool_()), pa.scalar(None, kind), whole), refused


def _fit_each(
    values: Sequence[Any], kind: pa.DataType, form: TimeForm
) -> tuple[pa.Array, Refusals]:
    fit = _fitter(kind, form)
    fitted, refused = [], {}
    for at, value in enumerate(values):
        one = None
        try:
            if value is not None:
                one = fit(value.item() if isinstance(value, np.generic) else value)
                if one is not None:
                    pa.scalar(one, kind)
        except _MisfitError as error:
            one, refused[at] = None, f"{error}: {_value_text(value)}"
        except (pa.ArrowException, ArithmeticError, ValueError, TypeError):
            one, refused[at] = None, f"does not fit {_name(kind)}: {_value_text(value)}"
        fitted.append(one)
    return pa.array(fitted, kind), refused


def _fitter(kind: pa.DataType, form: TimeForm) -> Callable[[Any], Any]:
    """A function that returns what Arrow accepts, or raises."""
    if types.is_integer(kind):
        return _whole_number
    if types.is_floating(kind):
        return _float32 if kind == pa.float32() else _number
    if types.is_timestamp(kind):
        return lambda value: _timestamp(value, form)
    for holds, fit in _FITTERS:
        if holds(kind):
            return fit
    return lambda value: value


def _whole_number(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(_only(value, (int,), "a whole number"))


def _number(value: Any) -> float:
    return float(_only(value, (int, float, Decimal), "a number"))


def _float32(value: Any) -> float:
    number = _number(value)
    if math.isfinite(number) and abs(number) > 3.4028235677973366e38:
        raise _MisfitError("too large for FLOAT")
    return number


def _timestamp(value: Any, form: TimeForm) -> int:
    try:
        return form.read(value)
    except ValueError as error:
        raise _MisfitError(str(error)) from None


def _date(value: Any) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise _MisfitError("not an ISO 8601 date") from None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _MisfitError("not a date")
    return value


def _decimal(value: Any) -> Decimal:
    number = _only(value, (int, float, Decimal), "a number")
    try:
        return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    except InvalidOperation:
        raise _MisfitError("not a number") from None


def _only(value: Any, kinds: tuple[type, ...], what: str) -> Any:
    # True and False are numbers to Python, but not in a thermometer's readings.
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise _MisfitError(f"not {what}")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _MisfitError("not true or false")
    return value


def _value_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _name(kind: pa.DataType) -> str:
    return str(kind).upper()


_FITTERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...]] = (
    (types.is_boolean, _truth),
    (types.is_string, lambda value: _only(value, (str,), "text")),
    (types.is_binary, lambda value: _only(value, (bytes,), "bytes")),
    (types.is_date, _date),
    (types.is_decimal, _decimal),
)
_NONE: Final = type(None)
_READY: Final[dict[int, frozenset[type]]] = {
    kind.id: frozenset(ready)
    for kinds, ready in (
        ((pa.int8(), pa.int16(), pa.int32(), pa.int64()), (int, _NONE)),
        ((pa.float32(), pa.float64()), (int, float, _NONE)),
        ((pa.string(),), (str, _NONE)),
        ((pa.binary(),), (bytes, _NONE)),
        ((pa.bool_(),), (bool, _NONE)),
    )
    for kind in kinds
}
"""Python types that Arrow accepts as they are, by the number of the type."""
