"""How a reader moves through a log, and registers its offset there."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final

from nilometer.errors import InputError, LogGapError
from nilometer.log.clock import now_micros
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import QUERY, WHERE, commit, free_name, register, release, touch

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_LIFE_EVERY: Final = 1_000_000


@dataclass(frozen=True)
class LogRange:
    """Which log is read, from which offset, and by which reader."""

    location: str
    layout: LogLayout
    """The columns that are read."""
    start: str | Position = LATEST
    """Where a reader starts that has not read anything yet."""
    begins_now: bool = False
    """Whether it starts there as of the query's planning, not of Spark's first read."""
    reader: str | None = None
    """The name under which the log stores the reader's offset; None: it stores none."""
    query: str | None = None
    """The query that the reader belongs to."""
    where: str | None = None
    """For a sensor table: the condition on static columns that selects the rows it reads."""
    needs: str | None = None
    """The same for the sensors to contact; it may be richer, as Spark evaluates it."""
    is_named: bool = True
    """Whether the log keeps what it has not read until the reader is forgotten."""
    may_lose: bool = False
    """Whether to continue if rows were deleted before they were read."""
    max_rows: int | None = None
    """The most rows of a micro-batch, where Spark reads it."""
    is_ending: bool = False
    """Whether only what was planned already is read, and nothing new."""

    def read_by(self, reader: str | None, where: str | None, needs: str | None) -> LogRange:
        """The same, read under its own name by one of the readers of a query."""
        return replace(self, reader=reader, query=self.reader, where=where, needs=needs)


class LogCursor:
    """A reader of a log, on the driver's side."""

    def __init__(self, log_range: LogRange) -> None:
        self._range = log_range
        self._reader = log_range.reader
        if log_range.reader is not None and not log_range.is_named:
            # The same statement may be started twice; rows must be kept for each of the two.
            self._reader = free_name(log_range.location, log_range.reader)
        self._log = LogReader.open(log_range.location)
        self._reported = 0
        """When the log last got to know that the reader is alive; 0: never."""
        self._committed: Position | None = None

    @property
    def log_id(self) -> str:
        """The id of the log, by which tasks know it."""
        return self._log.log_id

    def initial(self) -> Position:
        """Where a query starts: at the committed offset of its reader, if it has a name.

        The reader is registered there, so that nothing is deleted.
        """
        start = self._range.start
        if isinstance(start, Position):
            begin = start
        else:
            begin = self._log.start if start == EARLIEST else self._log.end
        place = self._register(begin, anew=not self._range.is_named)
        if place == begin and start == EARLIEST and begin < self._log.start:
            return self._register(self._log.start, anew=True)  # deleted before it was registered
        return place

    def available(self) -> Position:
        """The current end of the log."""
        return self._log.end

    def hold(self, position: Position) -> None:
        """Report that the reader is alive; register it here if the log does not know it yet."""
        if self._reader is None:
            return
        if not self._reported:
            self._register(position)
        elif now_micros() - self._reported >= _LIFE_EVERY:
            self._reported = now_micros()
            touch(self._range.location, self._reader, now=self._reported)

    def advance(self, start: Position, last: Position, max_rows: int | None) -> Position:
        """How far to read in one micro-batch: up to `last`, or at most this many rows.

        Spark calls this once the micro-batch that ends at `start` is done, so `start` is
        committed: Spark itself would commit it only with the next rows.
        """
        self.hold(start)
        self.commit(start)
        start = self._kept(start)
        if last <= start or self._range.is_ending:
            return start
        if max_rows is None or last.row - start.row <= max_rows:
            return last
        return min(last, self._log.limit(start, max_rows))

    def split(self, start: Position, end: Position, parts: int) -> list[tuple[Position, Position]]:
        """Split a range into at most this many, of about equal work."""
        start = self._kept(start)
        return self._log.split(start, end, parts) if start < end else []

    def commit(self, position: Position) -> None:
        """Commit an offset: rows before it are no longer needed."""
        if self._reader is not None and position != self._committed:
            self._committed = position
            commit(self._range.location, self._reader, position, now=now_micros())

    def stop(self) -> None:
        """Report that the reader has stopped for now."""
        if self._reader is not None and self._reported:
            release(self._range.location, self._reader, now=now_micros())

    def _kept(self, start: Position) -> Position:
        """The same offset or, if rows may be lost, the first that still exists."""
        try:
            self._log.check(start)
        except LogGapError:
            if not self._range.may_lose:
                raise
            return self._log.start
        return start

    def _register(self, position: Position, anew: bool = False) -> Position:
        log_range, now = self._range, now_micros()
        if self._reader is None:
            return position
        about = {QUERY: log_range.query, WHERE: log_range.needs}
        registration = register(
            log_range.location,
            self._reader,
            position,
            about,
            now=now,
            named=log_range.is_named,
            anew=anew,
        )
        self._reported = now
        return registration.position


def read_start(text: str | None) -> str | Position:
    """The option `startingOffsets`: earliest, latest, or an offset as Spark shows it."""
    if text is None or text.lower() in (EARLIEST, LATEST):
        return (text or LATEST).lower()
    try:
        return Position.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"startingOffsets cannot be {text!r}", hint="write earliest or latest"
        ) from None
