"""Arrow tables as JSON: the one way in which the API and deliveries write values.

Times are ISO 8601 in UTC with microseconds; decimals and integers beyond 2^53 are text, since
JavaScript would round them; binary is base64; NaN and infinities are the texts "NaN", "Infinity"
and "-Infinity"; durations are whole microseconds; structs are objects, maps with text as keys,
too, other maps lists of [key, value].
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import isfinite, isnan
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.expression_types import type_name

EXACT: Final = 1 << 53
"""Integers up to this one are the same in every JSON reader."""


_ODD: Final = (OverflowError, ValueError)
"""What Python raises for values of Arrow's that it does not have."""
_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso_time(micros: int) -> str:
    """An instant; one beyond the calendar, such as the watermark of an ended stream, by name.

    >>> iso_time(1), iso_time(2**63 - 1)
    ('1970-01-01T00:00:00.000001Z', 'infinity')
    """
    try:
        instant = _BEGIN + timedelta(microseconds=micros)
    except OverflowError:
        return "infinity" if micros > 0 else "-infinity"
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The columns of a table: name and SQL type."""
    names = unique_names(schema.names)
    return [
        {"name": name, "type": type_name(field.type)}
        for name, field in zip(names, schema, strict=True)
    ]


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a table as objects that `json` can write.

    >>> rows_of(pa.table({"n": [2**60, None], "x": [float("nan"), 0.5]}))
    [{'n': '1152921504606846976', 'x': 'NaN'}, {'n': None, 'x': 0.5}]
    """
    names = unique_names(table.schema.names)
    columns = [values_of(column) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def unique_names(names: list[str]) -> list[str]:
    """Names for the fields of an object: a second `ts` is `ts_2`.

    >>> unique_names(["ts", "ts", "ts_2"])
    ['ts', 'ts_3', 'ts_2']
    """
    taken = set(names)
    unique: list[str] = []
    seen: set[str] = set()
    for name in names:
        chosen, number = name, 1
        while chosen in seen or (chosen != name and chosen in taken):
            number += 1
            chosen = f"{name}_{number}"
        seen.add(chosen)
        unique.append(chosen)
    return unique


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column in a form that `json` can write."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in values_of(chunk)]
    kind = column.type
    if pat.is_dictionary(kind):
        return values_of(column.dictionary_decode())
    if pat.is_timestamp(kind):
        return _times(column)
    if pat.is_duration(kind):
        return values_of(column.cast(pa.duration("us"), safe=False).cast(pa.int64()))
    if pat.is_date(kind):
        return values_of(column.cast(pa.string()))  # Python has no dates beyond the year 9999
    if pat.is_nested(kind) and len(column) == column.null_count:
        return [None] * len(column)
    convert = _converter(kind)
    try:
        values: list[Any] = column.to_pylist()
    except _ODD:
        return [_odd_value(one, convert) for one in column]
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def _odd_value(one: pa.Scalar, convert: Callable[[Any], Any] | None) -> Any:
    try:
        value = one.as_py()
    except _ODD:
        return str(python_value(one))
    return value if value is None or convert is None else convert(value)


def python_value(one: pa.Scalar) -> Any:
    """A value; in Arrow's words if Python has none for it, such as dates beyond the year 9999."""
    try:
        return one.as_py()
    except _ODD:
        kind = one.type
    if is_text(kind):
        return one.cast(pa.binary()).as_py().decode(errors="replace")
    if pat.is_struct(kind):
        return {field.name: python_value(one[field.name]) for field in kind}
    if pat.is_nested(kind):
        return [python_value(item) for item in one.values]
    return str(one.cast(pa.string()).as_py())


def _times(column: pa.Array) -> list[Any]:
    zone = "" if column.type.tz is None else "Z"
    plain = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    if zone:
        plain = plain.cast(pa.timestamp("us", tz="UTC"))
    texts: list[Any] = pc.strftime(plain, format=f"%Y-%m-%dT%H:%M:%S{zone}").to_pylist()
    return texts


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """The conversion of a Python value of a type; None: no conversion."""
    if pat.is_int64(kind) or pat.is_uint64(kind):
        return _integer
    if pat.is_floating(kind):
        return _float
    if pat.is_boolean(kind) or pat.is_integer(kind) or is_text(kind) or pat.is_null(kind):
        return None
    if is_binary(kind):
        return _binary
    if pat.is_timestamp(kind) or pat.is_duration(kind):
        return lambda value: values_of(pa.array([value], kind))[0]
    if pat.is_struct(kind) or pat.is_map(kind) or is_list(kind):
        return _nested(kind)
    if pat.is_date(kind) or pat.is_time(kind):
        return lambda value: value.isoformat()
    return str


def _nested(kind: pa.DataType) -> Callable[[Any], Any]:
    if is_list(kind):
        item = _each(kind.value_type)
        return lambda value: [item(one) for one in value]
    if pat.is_map(kind):
        key, item = _each(kind.key_type), _each(kind.item_type)
        if is_text(kind.key_type):
            return lambda value: {key(name): item(one) for name, one in value}
        return lambda value: [[key(name), item(one)] for name, one in value]
    fields = [(kind.field(i).name, _each(kind.field(i).type)) for i in range(kind.num_fields)]
    return lambda value: {name: convert(value[name]) for name, convert in fields}


def _each(kind: pa.DataType) -> Callable[[Any], Any]:
    """Like `_converter`, for nested values, which may be missing."""
    convert = _converter(kind)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    return bool(
        pat.is_binary(kind)
        or pat.is_large_binary(kind)
        or pat.is_fixed_size_binary(kind)
        or pat.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def _integer(value: int) -> int | str:
    return value if -EXACT <= value <= EXACT else str(value)


def _float(value: float) -> float | str:
    if isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _binary(value: bytes) -> str:
    return b64encode(value).decode()
