"""Values as a column stores them: numbers converted to its type, the rest unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.expression_types import constant_type, is_integer, is_number, type_name
from nilometer.kernels.read_times import read_times
from nilometer.model.time_forms import TimeForm


def store_values(values: pa.Array, kind: pa.DataType, form: TimeForm | None = None) -> pa.Array:
    """The values in the type of a column; a PredicateError says which ones do not fit.

    Numbers and strings are times only if the column declares the form they come in.
    """
    source = values.type
    if source == kind:
        return values
    if pat.is_null(source):
        return pa.nulls(len(values), kind)
    if is_number(source) and is_number(kind):
        stored = cast_values(values, kind)
        if is_integer(kind) and not is_integer(source):
            _require_whole(values, stored, kind)
        return stored
    if pat.is_date(source) and pat.is_timestamp(kind):
        return values.cast(pa.timestamp("us")).cast(kind)
    if pat.is_timestamp(kind) and form is not None and (is_number(source) or pat.is_string(source)):
        return _store_times(values, form)
    raise PredicateError(
        f"a column of type {type_name(kind)} cannot store values of type {type_name(source)}",
        hint=_hint(kind),
    )


def _store_times(values: pa.Array, form: TimeForm) -> pa.Array:
    try:
        return read_times(values, form)
    except pa.ArrowInvalid:
        pass  # find the value, and what is wrong with it
    for value in values.to_pylist():
        try:
            _ = None if value is None else form.read(value)
        except ValueError as error:
            raise PredicateError(
                f"{value} is {error}", hint=f"times are in the format {form} here"
            ) from None
    raise PredicateError("some value is not a time", hint=f"times are in the format {form} here")


def store_constant(value: object, kind: pa.DataType, form: TimeForm | None = None) -> object:
    """One value, as a column of that type returns it.

    >>> store_constant(3, pa.float64()), store_constant([3, None], pa.list_(pa.float64()))
    (3.0, [3.0, None])
    """
    if isinstance(value, list):
        return _store_items(value, kind, form)
    source = pa.binary() if isinstance(value, bytes) else constant_type(value)
    return store_values(pa.array([value], source), kind, form)[0].as_py()


def _store_items(
    values: Sequence[object], kind: pa.DataType, form: TimeForm | None
) -> list[object]:
    if not pat.is_list(kind):
        raise PredicateError(
            f"a column of type {type_name(kind)} cannot store arrays", hint=_hint(kind)
        )
    if kind.value_type == pa.float64() and all(type(one) is float for one in values):
        return list(values)
    return [None if one is None else store_constant(one, kind.value_type, form) for one in values]


def _require_whole(values: pa.Array, stored: pa.Array, kind: pa.DataType) -> None:
    same = pc.equal(values.cast(pa.float64()), stored.cast(pa.float64()))
    places: Sequence[bool | None] = same.to_pylist()
    if False in places:
        lost = values[places.index(False)].as_py()
        raise PredicateError(
            f"a column of type {type_name(kind)} cannot store {lost}",
            hint="round it first: CAST(… AS BIGINT)",
        )


def _hint(kind: pa.DataType) -> str | None:
    if pat.is_date(kind):
        return "write DATE '2026-01-31'"
    if pat.is_timestamp(kind):
        return (
            "write TIMESTAMP '2026-01-31 12:00:00', or declare the format of the times: "
            "TIMESTAMP FROM EPOCH SECONDS"
        )
    if pat.is_list(kind):
        return "write ARRAY(…)"
    return "write CAST(… AS STRING)" if pat.is_string(kind) else None
