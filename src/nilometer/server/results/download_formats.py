"""Rows as files: CSV, JSON lines, Arrow and Parquet, written piece by piece."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from nilometer.kernels.json_values import rows_of, unique_names, values_of
from nilometer.log.layout import TIMESTAMP
from nilometer.past.downsample import flatten


class FileFormat(StrEnum):
    """The format of a file."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    ARROW = "arrow"
    PARQUET = "parquet"


FILE_TYPES: Final = {
    FileFormat.CSV: "text/csv; charset=utf-8",
    FileFormat.JSON_LINES: "application/x-ndjson",
    FileFormat.ARROW: "application/vnd.apache.arrow.stream",
    FileFormat.PARQUET: "application/vnd.apache.parquet",
}
_FIRST: Final = -62_135_596_800_000_000
_LAST: Final = 253_402_300_800_000_000
"""The years 1 to 9999, in microseconds."""
_TEXTS: Final = pa.csv.WriteOptions(include_header=False, quoting_style="needed")


def file_pieces(
    form: FileFormat, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[bytes]:
    """A file in pieces, about one for each batch."""
    schema = _with_distinct_names(schema)
    named = (one.rename_columns(schema.names) for one in batches)
    match form:
        case FileFormat.CSV:
            return _csv(schema, named)
        case FileFormat.JSON_LINES:
            return _json_lines(named)
        case FileFormat.ARROW:
            return _arrow(schema, named)
        case FileFormat.PARQUET:
            return _parquet(schema, named)


def _with_distinct_names(schema: pa.Schema) -> pa.Schema:
    """Columns with distinct names."""
    names = unique_names(schema.names)
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


def _json_lines(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows_of(batch)]
        yield "".join(f"{line}\n" for line in lines).encode()


def _csv(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    empty = flatten(pa.RecordBatch.from_pylist([], schema))
    sink = io.BytesIO()
    pa.csv.write_csv(_cells(empty), sink, pa.csv.WriteOptions(quoting_style="needed"))
    yield sink.getvalue()
    for batch in batches:
        sink = io.BytesIO()
        pa.csv.write_csv(_cells(flatten(batch)), sink, _TEXTS)
        yield sink.getvalue()


def _cells(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with JSON in the cells that are not plain values; times as ISO 8601."""
    columns = [_cell(one) for one in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _cell(column: pa.Array) -> pa.Array:
    kind = column.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if is_plain or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if kind == TIMESTAMP and _is_in_calendar(column):
        # Arrow looks up a zone for every value: without one it is many times faster.
        texts = column.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
        texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
        return pc.binary_join_element_wise(texts, "Z", "")
    texts = [
        one if one is None or isinstance(one, str) else json.dumps(one, ensure_ascii=False)
        for one in values_of(column)
    ]
    return pa.array(texts, pa.string())


def _is_in_calendar(times: pa.Array) -> bool:
    """Whether all instants are in years with four digits, which Arrow formats as we do."""
    ends = pc.min_max(times.cast(pa.int64())).as_py()
    first, last = ends["min"], ends["max"]
    return first is None or (first >= _FIRST and last < _LAST)


def _arrow(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    sink = _Taken()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema) as writer:
        yield sink.take()
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


def _parquet(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    sink = _Taken()
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        yield sink.take()
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Taken(io.RawIOBase):
    """A file whose content is taken as it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, content: object) -> int:
        piece = bytes(content)  # type: ignore[call-overload]
        self._parts.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        """What was written since the last call."""
        content, self._parts = b"".join(self._parts), []
        return content
