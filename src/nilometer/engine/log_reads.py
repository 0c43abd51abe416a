"""Reads logs for all queries of a bucket: what several of them read is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from nilometer.local.shown_rows import ShownRows
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.operators.stage import concat

MOST_ROWS: Final = 200_000
"""The most rows of a log that a query gets in a micro-batch, so that one that catches up does
not hold back the others."""
_Start: TypeAlias = tuple[str, str, Position]
"""A log, the layout in which it is read, and the offset from which it is read."""


@dataclass(frozen=True)
class LogRows:
    """Rows of a range of a log, and the watermark after them."""

    rows: pa.RecordBatch | None
    watermark: int | None
    end: Position
    waiting: int
    """How many more rows the log has."""

    @property
    def is_behind(self) -> bool:
        """Whether the log has more rows."""
        return self.waiting > 0


class OpenLogs:
    """Logs that this process has read, and how to present their rows."""

    def __init__(self) -> None:
        self._readers: dict[tuple[str, str], LogReader] = {}
        self._shown: dict[tuple[str, str, str | None], ShownRows] = {}

    def reader(self, log: str, layout: LogLayout) -> LogReader:
        """The reader of a log; raises LogError if there is no such log."""
        reader = self._readers.get((log, layout.key))
        if reader is None:
            reader = self._readers[log, layout.key] = LogReader.open(log, layout)
        return reader

    def shown(self, log: str, layout: LogLayout, where: str | None) -> ShownRows:
        """Converts stored rows of a log to rows as readers see them."""
        shown = self._shown.get((log, layout.key, where))
        if shown is None:
            shown = self._shown[log, layout.key, where] = ShownRows(log, layout, where)
        return shown

    def forget(self) -> None:
        """Reopen logs at their next read: they may have been replaced."""
        self._readers.clear()
        self._shown.clear()


class LogReads:
    """The state of the logs in one micro-batch."""

    def __init__(
        self, logs: OpenLogs, ends: Mapping[str, Position], max_rows: int = MOST_ROWS
    ) -> None:
        """Logs are read up to these ends; others up to their current end."""
        self._logs = logs
        self._max_rows = max_rows
        self._ends = dict(ends)
        self._ranges: dict[tuple[str, Position], tuple[Position, int]] = {}
        self._read: dict[_Start, tuple[pa.RecordBatch | None, int | None]] = {}
        self._shown: dict[tuple[_Start, str | None], pa.RecordBatch] = {}

    def rows(
        self, log: str, layout: LogLayout, start: Position, where: str | None
    ) -> LogRows | None:
        """The rows of a log from this offset on, in this layout; None if there are none."""
        reader = self._logs.reader(log, layout)
        stop, waiting = self._range(log, reader, start)
        if stop <= start:
            return None
        begin = (log, layout.key, start)
        stored, watermark = self._stored(begin, reader, stop)
        if stored is None:
            return LogRows(None, watermark, stop, waiting)
        key = (begin, where)
        if key not in self._shown:
            self._shown[key] = self._logs.shown(log, layout, where).show(stored)
        return LogRows(self._shown[key], watermark, stop, waiting)

    def _range(self, log: str, reader: LogReader, start: Position) -> tuple[Position, int]:
        """The offset up to which to read, and how many rows come after it."""
        if log not in self._ends:
            self._ends[log] = reader.end
        bounds = self._ranges.get((log, start))
        if bounds is None:
            end = self._ends[log]
            bounds = (end, 0)
            if end.row - start.row > self._max_rows:
                stop = min(end, reader.limit(start, self._max_rows))
                bounds = (stop, end.row - stop.row)
            self._ranges[log, start] = bounds
        return bounds

    def _stored(
        self, begin: _Start, reader: LogReader, stop: Position
    ) -> tuple[pa.RecordBatch | None, int | None]:
        stored = self._read.get(begin)
        if stored is None:
            start = begin[-1]
            frames = list(reader.read(start, stop))
            watermarks = [one.watermark for one in frames if one.watermark is not None]
            some = [one.rows for one in frames if len(one.rows)]
            rows = concat(some, reader.layout.stored) if some else None
            stored = self._read[begin] = (rows, watermarks[-1] if watermarks else None)
        return stored
