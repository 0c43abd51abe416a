"""Rows from Python objects or files as Arrow tables, with the types that Spark has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import InputError
from nilometer.local.find_files import find_files
from nilometer.local.read_files import read_files
from nilometer.model.names import find_column
from nilometer.sql.plan.types import TIMESTAMP

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_HINT = "give a pyarrow Table, a pandas DataFrame, or the path of a file or a folder of files"


def rows_of(name: str, source: Any, time: str | None = None) -> pa.Table:
    """All rows of a table, a data frame or files; the rows of a stream have instants as times."""
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        return read_files(name, find_files(name, path), time)[1]
    rows = _usual_types(name, _table(name, source))
    if time is None:
        return rows
    place = find_column(name, rows.column_names, time)
    field = rows.schema.field(place)
    if not pat.is_timestamp(field.type) and not pat.is_date(field.type):
        return rows
    times = rows.column(place)
    times = times if pat.is_timestamp(field.type) else times.cast(pa.timestamp("us"))
    return rows.set_column(place, pa.field(field.name, TIMESTAMP), times.cast(TIMESTAMP))


def _table(name: str, source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    pandas = sys.modules.get("pandas")  # a caller with a data frame has already imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return pa.Table.from_pandas(source, preserve_index=False)
    raise InputError(f"{name} has no rows", detail=f"got {type(source).__name__}", hint=_HINT)


def _usual_types(name: str, rows: pa.Table) -> pa.Table:
    fields = [pa.field(one.name, _usual(name, one.name, one.type)) for one in rows.schema]
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(rows.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _usual(name: str, column: str, kind: pa.DataType) -> pa.DataType:
    """The Spark type that holds values of a type."""
    if pat.is_dictionary(kind):
        return _usual(name, column, kind.value_type)
    if pat.is_timestamp(kind):
        return pa.timestamp("us") if kind.tz is None else TIMESTAMP
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        return pa.list_(_usual(name, column, kind.value_type))
    if pat.is_map(kind):
        return pa.map_(_usual(name, column, kind.key_type), _usual(name, column, kind.item_type))
    if pat.is_struct(kind):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([(one.name, _usual(name, column, one.type)) for one in parts])
    if pat.is_time(kind) or pat.is_duration(kind) or pat.is_decimal256(kind):
        raise InputError(
            f"column {column} of {name} is of the type {kind}",
            hint="cast it: lengths of time to whole numbers, times of day to text",
        )
    return _WIDER.get(kind, kind)
