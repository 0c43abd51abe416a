"""Parquet files as tables, with the types that Spark has for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from nilometer.errors import OnlySparkError
from nilometer.sql.plan.types import TIMESTAMP

_SAME: Final = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
)


def read_parquet(paths: Sequence[Path], schema: pa.Schema | None = None) -> pa.Table:
    """All rows of files that share the same columns: those of the first, or these."""
    tables = []
    for path in paths:
        file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        _require_known(file)
        wanted = pa.schema([(one.name, _type(one)) for one in file.schema_arrow])
        schema = schema or wanted
        if wanted != schema:
            raise OnlySparkError("the files have different columns")
        rows = file.read()
        columns = [
            column.cast(kind) for column, kind in zip(rows.columns, schema.types, strict=True)
        ]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    assert schema is not None
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _require_known(file: pq.ParquetFile) -> None:
    """Refuse what the file contains in a form that Arrow hides."""
    for number in range(len(file.schema)):
        column = file.schema.column(number)
        logical = str(column.logical_type).lower()
        if "nanoseconds" in logical or "unsigned" in logical or "issigned=false" in logical:
            raise OnlySparkError(f"column {column.name} is of a type that Spark does not have")


def _type(field: pa.Field) -> pa.DataType:
    """The type of a column in Spark."""
    kind = field.type
    if pat.is_dictionary(kind):
        kind = kind.value_type
    if pat.is_large_string(kind):
        return pa.string()
    if pat.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return TIMESTAMP if kind.tz is not None else pa.timestamp("us")
    if kind in _SAME or pat.is_decimal128(kind):
        return kind
    raise OnlySparkError(f"column {field.name} is of the type {kind}")
