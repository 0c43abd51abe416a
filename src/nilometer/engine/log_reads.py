"""Reads logs for all queries of a bucket: what several of them want is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from nilometer.local.shown_rows import ShownRows
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.operators.stage import concat

MOST_ROWS: Final = 200_000
"""A query gets at most so many rows of a log in a micro-batch: one that catches up does not
hold back the others."""


@dataclass(frozen=True)
class LogRows:
    """Rows of a range of a log, and the watermark behind them."""

    rows: pa.RecordBatch | None
    watermark: int | None
    end: Position
    is_behind: bool
    """Whether the log has more."""


class OpenLogs:
    """Logs that this process has read, and how their rows are shown."""

    def __init__(self) -> None:
        self._readers: dict[str, LogReader] = {}
        self._shown: dict[tuple[str, str | None], ShownRows] = {}

    def reader(self, log: str) -> LogReader:
        """Raises LogError if there is no such log."""
        if log not in self._readers:
            self._readers[log] = LogReader.open(log)
        return self._readers[log]

    def shown(self, log: str, where: str | None) -> ShownRows:
        """What makes stored rows of a log those that a reader sees."""
        found = self._shown.get((log, where))
        if found is None:
            found = self._shown[log, where] = ShownRows(log, self.reader(log).layout, where)
        return found

    def forget(self) -> None:
        """Open logs anew when they are read next: others may be in their places."""
        self._readers.clear()
        self._shown.clear()


class LogReads:
    """The logs as they are in one micro-batch."""

    def __init__(
        self, logs: OpenLogs, ends: Mapping[str, Position], most_rows: int = MOST_ROWS
    ) -> None:
        """Logs are read up to these ends; others, up to where they are now."""
        self._logs = logs
        self._most_rows = most_rows
        self._ends = dict(ends)
        self._ranges: dict[tuple[str, Position], tuple[Position, bool]] = {}
        self._read: dict[tuple[str, Position], tuple[pa.RecordBatch | None, int | None]] = {}
        self._shown: dict[tuple[str, Position, str | None], pa.RecordBatch] = {}

    def rows(self, log: str, start: Position, where: str | None) -> LogRows | None:
        """What a log has from here on; None if that is nothing."""
        stop, is_behind = self._range(log, start)
        if stop <= start:
            return None
        stored, watermark = self._stored(log, start, stop)
        if stored is None:
            return LogRows(None, watermark, stop, is_behind)
        key = (log, start, where)
        if key not in self._shown:
            self._shown[key] = self._logs.shown(log, where).show(stored)
        return LogRows(self._shown[key], watermark, stop, is_behind)

    def _range(self, log: str, start: Position) -> tuple[Position, bool]:
        """Up to where to read, and whether there is more."""
        if log not in self._ends:
            self._ends[log] = self._logs.reader(log).end
        found = self._ranges.get((log, start))
        if found is None:
            end = self._ends[log]
            found = (end, False)
            if end.row - start.row > self._most_rows:
                found = (min(end, self._logs.reader(log).limit(start, self._most_rows)), True)
            self._ranges[log, start] = found
        return found

    def _stored(
        self, log: str, start: Position, stop: Position
    ) -> tuple[pa.RecordBatch | None, int | None]:
        found = self._read.get((log, start))
        if found is None:
            reader = self._logs.reader(log)
            frames = list(reader.read(start, stop))
            told = [one.watermark for one in frames if one.watermark is not None]
            some = [one.rows for one in frames if len(one.rows)]
            rows = concat(some, reader.layout.stored) if some else None
            found = self._read[log, start] = (rows, told[-1] if told else None)
        return found
