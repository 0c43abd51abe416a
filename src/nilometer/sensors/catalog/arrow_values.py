"""Rows as the catalog stores them: in Arrow's own format, to preserve types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from nilometer.errors import CatalogError


def pack_table(rows: pa.Table) -> bytes:
    """Many rows, compressed, with their schema."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def unpack_table(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def pack_row(row: pa.RecordBatch) -> bytes:
    """One row without its schema."""
    return bytes(row.serialize())


def unpack_row(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(content), schema)


def rows_of(values: Sequence[Mapping[str, object]], schema: pa.Schema) -> list[pa.RecordBatch]:
    """One batch for each row of values by column; missing values are NULL."""
    for row in values:
        if unknown := set(row).difference(schema.names):
            raise CatalogError(f"there is no column {min(unknown)}", detail=_columns(schema))
    try:
        batch = pa.RecordBatch.from_pylist([dict(row) for row in values], schema)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise CatalogError(
            "values do not fit their columns", detail=f"{error}; {_columns(schema)}"
        ) from error
    # Arrow counts no rows if there are no columns.
    return [batch.slice(place, 1) for place in range(len(values))]


def fit_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with these columns and types; the names must match and the casts must be safe."""
    if rows.schema.equals(schema):
        return rows
    try:
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError) as error:
        raise CatalogError(
            "rows do not fit their table", detail=f"{error}; {_columns(schema)}"
        ) from error


def values_of(row: pa.RecordBatch) -> dict[str, Any]:
    """The Python values of one row."""
    values: dict[str, Any] = row.to_pylist()[0] if row.num_columns else {}
    return values


def _columns(schema: pa.Schema) -> str:
    return "the columns are " + ", ".join(f"{one.name} {one.type}" for one in schema)
