"""Where the rows of tables of the past come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import InputError, TooLargeError
from nilometer.kernels.gather import join_batches
from nilometer.kernels.json_values import iso_time
from nilometer.local.complete_rows import rows_at
from nilometer.local.shown_rows import ShownRows
from nilometer.log.layout import DIFF, TIME, TIMESTAMP
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.spans import Span, spans_of, stored_bytes
from nilometer.past.question import Bounds, StoredColumns, TableUse
from nilometer.past.sandbox import Rows

_BATCH_ROWS: Final = 100_000
_AT_ONCE: Final = 256 << 20
"""Up to this many bytes are passed as a whole, for several threads to read; more is streamed."""
MOST_BYTES: Final = 512 << 20
"""Rows of a table that is read more than once are held in memory, up to this many bytes."""


class StoredTable(Protocol):
    """A table of the past."""

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def columns(self) -> StoredColumns: ...
    def read(self, use: TableUse) -> Rows:
        """Its rows, possibly with some that are not needed."""

    def size(self, use: TableUse) -> int:
        """About how many rows would be read."""

    def bytes(self, use: TableUse, enough: int) -> int:
        """About how many bytes would be read; all that are stored if they are not too many."""


@dataclass(frozen=True)
class FixedTable:
    """A static table."""

    rows: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def columns(self) -> StoredColumns:
        return StoredColumns(tuple(self.rows.column_names))

    def read(self, use: TableUse) -> Rows:
        return self.rows

    def size(self, use: TableUse) -> int:
        return len(self.rows)

    def bytes(self, use: TableUse, enough: int) -> int:
        return int(self.rows.nbytes)


@dataclass(frozen=True)
class LogTable:
    """The rows of a stream, or those a query has appended."""

    location: str
    reader: LogReader
    span: tuple[Position, Position] | None = None
    """The positions between which rows are read; None: all that are kept."""

    @property
    def schema(self) -> pa.Schema:
        return self.reader.layout.shown

    @property
    def columns(self) -> StoredColumns:
        layout = self.reader.layout
        time = TIME if layout.sensors is not None else layout.time
        return StoredColumns(tuple(layout.shown.names), time)

    def read(self, use: TableUse) -> Rows:
        schema = self._schema(use)
        batches = self._batches(use, schema)
        if use.times > 1:
            return pa.Table.from_batches(_bounded(batches), schema)
        some, size = [], 0
        for batch in batches:
            some.append(batch)
            size += batch.nbytes
            if size > _AT_ONCE:
                return pa.RecordBatchReader.from_batches(schema, chain(some, batches))
        return pa.Table.from_batches(some, schema)

    def stream(self, use: TableUse) -> pa.RecordBatchReader:
        """The same rows as a stream that holds little in memory."""
        schema = self._schema(use)
        return pa.RecordBatchReader.from_batches(schema, self._batches(use, schema))

    def size(self, use: TableUse) -> int:
        return self.reader.end.row - self.reader.start.row

    def bytes(self, use: TableUse, enough: int) -> int:
        everything = stored_bytes(self.location)
        return everything if everything <= enough else sum(one.bytes for one in self.spans(use))

    def spans(self, use: TableUse) -> list[Span]:
        """The spans of the rows, file by file."""
        return spans_of(self.location, _times(use))

    def _schema(self, use: TableUse) -> pa.Schema:
        names = [one for one in self.columns.columns if one in use.columns]
        return pa.schema([self.reader.layout.shown.field(one) for one in names])

    def _batches(self, use: TableUse, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        reader, time = self.reader, self.columns.time
        shown = ShownRows(self.location, reader.layout)
        some: list[pa.RecordBatch] = []
        count = 0
        for stored in reader.batches(_times(use), self.span):
            rows = shown.show(stored)
            if use.instant is not None and time is not None:
                rows = rows.filter(pc.less_equal(rows.column(time), _instant(use.instant)))
            if not len(rows):
                continue
            some.append(rows.select(schema.names))
            count += len(rows)
            if count >= _BATCH_ROWS:
                yield _joined(some)
                some, count = [], 0
        if some:
            yield _joined(some)


@dataclass(frozen=True)
class ChangingTable:
    """The answer of a query in changelog mode: as it is now, or as it was at an instant."""

    location: str
    reader: LogReader

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([one for one in self.reader.layout.shown if one.name not in (TIME, DIFF)])

    @property
    def columns(self) -> StoredColumns:
        return StoredColumns(tuple(self.schema.names))

    def read(self, use: TableUse) -> Rows:
        self._require_kept(use.instant)
        rows = _bounded(one for one in self.reader.batches() if len(one))
        changes = pa.Table.from_batches(rows, self.reader.layout.shown)
        names = [*self.columns.columns, TIME, DIFF]
        return rows_at(changes.select(names), use.instant)

    def size(self, use: TableUse) -> int:
        return self.reader.end.row - self.reader.start.row

    def bytes(self, use: TableUse, enough: int) -> int:
        return stored_bytes(self.location)

    def _require_kept(self, instant: int | None) -> None:
        """Refuse an instant before that of the base, into which older changes were merged."""
        base = self.reader.base
        if instant is not None and base is not None and instant < base.watermark - 1:
            raise InputError(
                "the changes of that time are no longer kept",
                detail=f"the oldest known answer is that of {iso_time(base.watermark - 1)}",
                hint="the query's history limit sets how long changes are kept",
            )


def _bounded(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    held, size = [], 0
    for batch in batches:
        size += batch.nbytes
        if size > MOST_BYTES:
            raise TooLargeError(
                "the query would hold too many rows in memory",
                hint="ask for a shorter range of time, or read each table once",
            )
        held.append(batch)
    return held


def _joined(some: list[pa.RecordBatch]) -> pa.RecordBatch:
    return join_batches(some)


def _times(use: TableUse) -> Bounds:
    """The inclusive time range of rows that matter."""
    low, high = use.bounds
    if use.instant is None:
        return low, high
    return low, use.instant if high is None else min(high, use.instant)


def _instant(micros: int) -> pa.Scalar:
    return pa.scalar(micros, pa.int64()).cast(TIMESTAMP)
