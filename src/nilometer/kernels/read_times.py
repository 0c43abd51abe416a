"""Read columns of numbers and texts as instants, in the time format that a field declares."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.expression_types import type_name
from nilometer.kernels.function_types import is_text
from nilometer.model.time import EARLIEST, LATEST
from nilometer.model.time_forms import EpochTimes, EpochUnit, TimeForm, WrittenTimes

INSTANT: Final = pa.timestamp("us", tz="UTC")
SECONDS: Final = EpochTimes(EpochUnit.SECONDS)
"""The unit of a sensor's number where nothing is declared."""
_DISTINCT: Final = b"nilometer.distinct"
_EPOCH: Final = b"nilometer.epoch"
_PATTERN: Final = b"nilometer.time_pattern"
_NUMBER: Final = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_DATE_DIGITS: Final = len("20260131")


def time_field(name: str, kind: pa.DataType, form: TimeForm | None) -> pa.Field:
    """A column that declares its time format; without a format, any column."""
    if form is None:
        return pa.field(name, kind)
    if isinstance(form, EpochTimes):
        return pa.field(name, kind, metadata={_EPOCH: form.unit.encode()})
    return pa.field(name, kind, metadata={_PATTERN: form.pattern.encode()})


def form_of(column: pa.Field) -> TimeForm | None:
    """The time format of a column, if it declares one."""
    metadata = column.metadata or {}
    if _EPOCH in metadata:
        return EpochTimes(EpochUnit(metadata[_EPOCH].decode()))
    return _written(metadata[_PATTERN].decode()) if _PATTERN in metadata else None


@lru_cache
def _written(pattern: str) -> WrittenTimes:
    """Parse a pattern once, however many values are read with it."""
    return WrittenTimes(pattern)


def with_forms(columns: pa.Schema, form: TimeForm | None) -> pa.Schema:
    """The columns, with this format for time columns that declare none."""
    return pa.schema([_with_form(one, form) for one in columns])


def without_forms(columns: pa.Schema) -> pa.Schema:
    """The columns as they are stored: times are times."""
    return pa.schema([one.remove_metadata() for one in columns])


def with_distinct(column: pa.Field, values: int | None) -> pa.Field:
    """A column that declares how many distinct values it has."""
    if values is None:
        return column
    return column.with_metadata({**(column.metadata or {}), _DISTINCT: str(values).encode()})


def declared_distinct(column: pa.Field) -> int | None:
    """How many distinct values a column has, if its declaration says so."""
    declared = (column.metadata or {}).get(_DISTINCT)
    return None if declared is None else int(declared)


def declared_type(column: pa.Field) -> str:
    """The type of a column as it was declared.

    >>> declared_type(time_field("ts", INSTANT, SECONDS))
    'TIMESTAMP FROM EPOCH SECONDS'
    >>> declared_type(with_distinct(pa.field("room", pa.string()), 12))
    'STRING DISTINCT 12'
    """
    form, values = form_of(column), declared_distinct(column)
    words = [type_name(column.type), form, None if values is None else f"DISTINCT {values}"]
    return " ".join(str(one) for one in words if one is not None)


def read_times(values: pa.Array, form: TimeForm | None) -> pa.Array:
    """Instants; numbers count by the form, texts are of its pattern, else ISO 8601 or numbers.

    Without a zone times are in UTC. Without a form numbers count seconds, but eight digits of text
    are a date. A pa.ArrowInvalid where some value is not a time: `read` of the form says why.
    """
    if pat.is_null(values.type):
        return pa.nulls(len(values), INSTANT)
    if pat.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", tz=values.type.tz), safe=False).cast(INSTANT)
    if pat.is_date(values.type):
        return pc.assume_timezone(values.cast(pa.timestamp("us")), "UTC")
    if is_text(values.type):
        if isinstance(form, WrittenTimes):
            return _read_each(values, form)
        values = _numbers(values, are_dates=form is None)
    if is_text(values.type):
        return _iso_times(values)
    return _counted(values, form or SECONDS)


def _with_form(column: pa.Field, form: TimeForm | None) -> pa.Field:
    kind = column.type.value_type if pat.is_list(column.type) else column.type
    if not pat.is_timestamp(kind) or form is None or form_of(column) is not None:
        return column
    return time_field(column.name, column.type, form)


def _numbers(values: pa.Array, *, are_dates: bool) -> pa.Array:
    """Cells of text as numbers, if all of them are numbers."""
    values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(values), ""), None, values)
    are_numbers = pc.match_substring_regex(values, _NUMBER)
    if are_dates:
        is_no_date = pc.not_equal(pc.utf8_length(values), _DATE_DIGITS)
        are_numbers = pc.and_(are_numbers, is_no_date)
    if values.null_count == len(values) or not pc.all(are_numbers).as_py():
        return values
    values = pc.utf8_trim_whitespace(values)
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.cast(pa.float64())


def _iso_times(values: pa.Array) -> pa.Array:
    try:
        return values.cast(INSTANT)
    except pa.ArrowInvalid:
        return pc.assume_timezone(values.cast(pa.timestamp("us")), "UTC")


def _counted(values: pa.Array, form: TimeForm) -> pa.Array:
    if not isinstance(form, EpochTimes):
        return _read_each(values, form)
    if pat.is_integer(values.type):
        counted = _counted_exactly(values.cast(pa.int64()), form.unit)
    elif pat.is_floating(values.type) and form.unit is not EpochUnit.NANOS:
        scaled = pc.multiply(values.cast(pa.float64()), float(form.unit.micros))
        counted = pc.round(scaled).cast(pa.int64())
    else:
        return _read_each(values, form)
    if not pc.all(_in_range(counted), min_count=0).as_py():
        raise pa.ArrowInvalid(f"a time is before 1700 or after 9999 in {form.unit.noun}")
    return counted.cast(INSTANT)


def _counted_exactly(values: pa.Array, unit: EpochUnit) -> pa.Array:
    if unit is EpochUnit.NANOS:  # Arrow divides towards zero, but time is cut downwards
        down = pc.if_else(pc.less(values, 0), pc.subtract_checked(values, 999), values)
        return pc.divide(down, 1_000)
    return pc.multiply_checked(values, pa.scalar(int(unit.micros), pa.int64()))


def _in_range(counted: pa.Array) -> pa.Array:
    return pc.and_(pc.greater_equal(counted, EARLIEST), pc.less_equal(counted, LATEST))


def _read_each(values: pa.Array, form: TimeForm) -> pa.Array:
    """Parse each distinct value once."""
    encoded = pc.dictionary_encode(values)
    try:
        read = [None if one == "" else form.read(one) for one in encoded.dictionary.to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    instants = pa.array(read, pa.int64()).cast(INSTANT)
    return instants.take(encoded.indices)
