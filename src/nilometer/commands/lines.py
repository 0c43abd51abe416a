"""Rows as lines of bytes, made where the rows are: in this process, or in Spark's workers.

Every worker writes its own file, so an answer need not fit into any process's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.text_values import json_objects, text_values

WRITTEN: Final = "file STRING"
TAKEN: Final = "rows BIGINT, body BINARY"


@dataclass(frozen=True)
class WriteLines:
    """Writes batches of rows as lines to a file, and returns the file's name.

    With names, lines are JSON objects with these fields; without, they are CSV.
    """

    folder: str
    names: tuple[str, ...] | None = None
    written: frozenset[int] = frozenset()
    """Columns whose text is already JSON."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file = Path(self.folder, uuid4().hex)
        with open(file, "wb") as out:
            for batch in batches:
                out.write(lines_of(batch, self.names, self.written))
        yield pa.RecordBatch.from_arrays([pa.array([str(file)])], ["file"])


@dataclass(frozen=True)
class TakeRows:
    """Takes the first of all rows as text, truncated, and counts them."""

    limit: int
    characters: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken, rows = [], 0
        for batch in batches:
            if rows < self.limit:
                taken.append(self.cut(batch.slice(0, self.limit - rows)))
            rows += len(batch)
        columns = [pa.array([rows], pa.int64()), pa.array([_to_bytes(taken)], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["rows", "body"])

    def cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The text of rows, with no value longer than a table shows."""
        texts = [_shown_text(column) for column in batch.columns]
        columns = [pc.utf8_slice_codeunits(column, 0, self.characters) for column in texts]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _shown_text(column: pa.Array) -> pa.Array:
    """The text of a column for people: durations are hours, minutes and seconds.

    >>> _shown_text(pa.array([464_163, 90_000_000, None], pa.duration("us"))).to_pylist()
    ['0:00:00.464', '0:01:30', None]
    """
    if not pat.is_duration(column.type):
        return text_values(column)
    lengths = column.cast(pa.duration("ms"), safe=False).to_pylist()
    return pa.array([None if one is None else _length(one) for one in lengths], pa.string())


def _length(one: timedelta) -> str:
    """A length of time for people.

    >>> _length(timedelta(days=-2)), _length(timedelta(hours=25, milliseconds=1))
    ('-2 days, 0:00:00', '1 day, 1:00:00.001')
    """
    return f"{'-' if one < timedelta(0) else ''}{str(abs(one)).removesuffix('000')}"


def lines_of(
    batch: pa.RecordBatch,
    names: tuple[str, ...] | None,
    written: frozenset[int] = frozenset(),
) -> pa.Buffer:
    """Rows as JSON with fields of these names, or as CSV."""
    if names is None:
        return csv_lines([_csv_text(column) for column in batch.columns])
    return _end_lines(json_objects(list(names), batch.columns, len(batch), written))


def csv_lines(columns: list[pa.Array]) -> pa.Buffer:
    r"""Columns of text as CSV, NULL is nothing.

    >>> csv_lines([quoted(pa.array(["x", "", None])), pa.array(["1", "2", "c"])]).to_pybytes()
    b'x,1\n"",2\n,c\n'
    """
    joined = pc.binary_join_element_wise(
        *columns, ",", null_handling="replace", null_replacement=""
    )
    return _end_lines(joined)


def _csv_text(column: pa.Array) -> pa.Array:
    """A column as CSV text; numbers and times never need quotes."""
    texts, kind = text_values(column, zoned=True), column.type
    is_plain = pat.is_integer(kind) or pat.is_floating(kind) or pat.is_temporal(kind)
    return texts if is_plain else quoted(texts)


def quoted(column: pa.Array) -> pa.Array:
    """Texts for CSV: empty text is quoted, other text only where needed."""
    special = pc.match_substring_regex(column, '[",\r\n]')
    needed = pc.or_(special, pc.equal(column, ""))
    if not pc.any(needed).as_py():
        return column
    doubled = pc.replace_substring(column, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise("", doubled, "", '"'), column)


def _end_lines(lines: pa.Array) -> pa.Buffer:
    """The bytes of all lines in order, each with its line end."""
    ended = pc.binary_join_element_wise(lines, "", "\n")
    if not len(ended):
        return pa.py_buffer(b"")
    _, offsets, content = ended.buffers()
    last = np.frombuffer(offsets, np.int32)[len(ended)]
    return content.slice(0, int(last))


def _to_bytes(batches: list[pa.RecordBatch]) -> bytes | None:
    if not batches:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_of_texts(columns: list[pa.Array]) -> list[tuple[str | None, ...]]:
    """Columns of text as rows."""
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def read_taken(bodies: list[bytes | None], limit: int) -> list[tuple[str | None, ...]]:
    """The first rows that `TakeRows` took from all parts."""
    rows: list[tuple[str | None, ...]] = []
    for body in bodies:
        if body is not None and len(rows) < limit:
            rows.extend(rows_of_texts(pa.ipc.open_stream(body).read_all().columns))
    return rows[:limit]
