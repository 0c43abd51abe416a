"""How a reader moves through a log, and what it tells the log about itself."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Final

from nilometer.errors import InputError, LogGapError
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import QUERY, WHERE, commit, free_name, register, release, touch

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_LIFE_EVERY: Final = 1_000_000


@dataclass(frozen=True)
class LogRange:
    """Which log is read, from where on, and by whom."""

    location: str
    start: str | Position = LATEST
    """Where a reader begins that has not read anything yet."""
    reader: str | None = None
    """Under which name the log knows how far the rows have been read; None: it does not."""
    query: str | None = None
    """The query that the reader belongs to."""
    where: str | None = None
    """Of a sensor table: the condition on static columns that chooses the rows it reads."""
    needs: str | None = None
    """The same for the sensors that are contacted; it may say more, as Spark is asked."""
    is_named: bool = True
    """Whether the log keeps what it has not read until the reader is forgotten."""
    may_lose: bool = False
    """Whether to go on where rows have been deleted before they were read."""
    layout: LogLayout | None = None
    """The columns that are wanted; None: those that the log has when it is read."""


class LogCursor:
    """A reader of a log, on the driver's side."""

    def __init__(self, given: LogRange) -> None:
        self._given = given
        self._reader = given.reader
        if given.reader is not None and not given.is_named:
            # The same statement may be started twice, and each must be kept what it has not read.
            self._reader = free_name(given.location, given.reader)
        self._log = LogReader.open(given.location)
        self._told = 0
        self._committed: Position | None = None

    def initial(self) -> Position:
        """Where a query begins: where its reader has committed before, if it has a name.

        It is registered there, so that nothing is deleted.
        """
        start = self._given.start
        if isinstance(start, Position):
            found = start
        else:
            found = self._log.start if start == EARLIEST else self._log.end
        place = self._register(found, anew=not self._given.is_named)
        if place == found and start == EARLIEST and found < self._log.start:
            return self._register(self._log.start, anew=True)  # it was deleted before it was held
        return place

    def available(self) -> Position:
        """The end of the log as it is now."""
        return self._log.end

    def hold(self, position: Position) -> None:
        """Show that the reader lives; if the log does not know it yet, that it reads from here."""
        if self._reader is None:
            return
        if not self._told:
            self._register(position)
        elif _now() - self._told >= _LIFE_EVERY:
            self._told = _now()
            touch(self._given.location, self._reader, now=self._told)

    def advance(self, start: Position, last: Position, max_rows: int | None) -> Position:
        """How far to read in one micro-batch: to `last`, or at most so many rows.

        Spark asks once the micro-batch is done that ends at `start`, so that is committed: it
        would say so itself only with the next rows.
        """
        self.hold(start)
        self.commit(start)
        start = self._kept(start)
        if last <= start:
            return start
        if max_rows is None or last.row - start.row <= max_rows:
            return last
        return min(last, self._log.limit(start, max_rows))

    def split(self, start: Position, end: Position, parts: int) -> list[tuple[Position, Position]]:
        """At most so many ranges that make up one, of about equal work."""
        start = self._kept(start)
        return self._log.split(start, end, parts) if start < end else []

    def commit(self, position: Position) -> None:
        """Rows before this place are not needed any more."""
        if self._reader is not None and position != self._committed:
            self._committed = position
            commit(self._given.location, self._reader, position, now=_now())

    def stop(self) -> None:
        """The reader is gone for now."""
        if self._reader is not None and self._told:
            release(self._given.location, self._reader, now=_now())

    def _kept(self, start: Position) -> Position:
        """The same place, or, where that may be, the first that is still there."""
        try:
            self._log.check(start)
        except LogGapError:
            if not self._given.may_lose:
                raise
            return self._log.start
        return start

    def _register(self, position: Position, anew: bool = False) -> Position:
        given, now = self._given, _now()
        if self._reader is None:
            return position
        about = {QUERY: given.query, WHERE: given.needs}
        found = register(
            given.location,
            self._reader,
            position,
            about,
            now=now,
            named=given.is_named,
            anew=anew,
        )
        self._told = now
        return found.position


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


def _now() -> int:
    return time.time_ns() // 1000
