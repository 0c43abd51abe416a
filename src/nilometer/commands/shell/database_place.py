"""A database of this process, on Spark, as the place of a shell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

import pyarrow as pa

from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.follow_results import (
    Followed,
    FollowStatus,
    Results,
    Screen,
    follow_batches,
)
from nilometer.commands.shell.place import StatementResult
from nilometer.commands.statements import OneStatement
from nilometer.database import Database
from nilometer.errors import GoesOnError, NilometerError
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.spark.failures import explained_failures
from nilometer.sql.parse.with_constants import with_constants

_NEWEST: Final = 10
"""How many stored rows of a named query are shown before new ones."""
_MOST_ROWS: Final = 10_000
"""The same maximum as a server has for one answer."""
_CUT: Final = (
    f"there are more rows: a shell takes {_MOST_ROWS:,} of one answer. Ask for others with WHERE, "
    "ORDER BY and LIMIT; nilometer sql --db writes them all"
)
_LOOK_SECONDS: Final = 0.05
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class DatabasePlace:
    """Runs statements in a database that this process has open."""

    db: Database
    title: str
    _tag: str = field(default_factory=lambda: f"shell-{uuid4().hex}")

    def run(self, statement: OneStatement) -> StatementResult:
        if not statement.is_query:
            outcome = self.db.execute(statement.sql, parameters=statement.parameters)
            rows = outcome.rows
            return StatementResult(outcome.message, None if rows is None else ArrowAnswer(rows))
        if self.db.asks_past(statement.sql, statement.parameters):
            past, max_rows = self.db.past, _MOST_ROWS + 1
            return _first(past.select(statement.sql, statement.parameters, max_rows=max_rows))
        with explained_failures(), self._cancellable():
            frame = self.db.sql(statement.sql, parameters=statement.parameters)
            if frame.isStreaming:
                raise GoesOnError("this query runs for as long as its streams do")
            rows = frame.limit(_MOST_ROWS + 1).toArrow()
        return _first(rows)

    def explain(self, statement: OneStatement) -> str:
        return self.db.explain(statement.sql, parameters=statement.parameters)

    def look(self, statement: str) -> pa.Table:
        rows = self.db.execute(statement).rows
        return pa.table({}) if rows is None else rows

    def cancel(self) -> None:
        self.db.spark.sparkContext.cancelJobsWithTag(self._tag)

    def follow_select(self, statement: OneStatement, screen: Screen) -> Followed:
        text = with_constants(statement.sql, statement.parameters)
        made = self.db.create_query(None, text, temporary=True)
        try:
            return self._follow(made.name, statement.sql, screen, from_start=True)
        finally:
            with suppress(NilometerError):  # it is dropped with the database
                self.db.drop_query(made.name)

    def follow_named(self, name: str, screen: Screen) -> Followed:
        status = self.db.query_status(name)
        return self._follow(status.name, status.text, screen, from_start=False)

    def close(self) -> None:
        """Do nothing: the database is closed by whoever opened it."""

    def _follow(self, name: str, sql: str, screen: Screen, *, from_start: bool) -> Followed:
        log = LogReader.open(self.db.log_of(name))
        newest = log.place_of(max(0, log.end.row - _NEWEST))
        batches = LogBatches(self.db, name, log, log.start if from_start else newest)
        return follow_batches(Results(name, sql, log.layout.stored), _held(batches), (), screen)

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        context = self.db.spark.sparkContext
        context.addJobTag(self._tag)
        context.setInterruptOnCancel(True)
        try:
            yield
        finally:
            with suppress(Exception):  # Spark may have ended
                context.removeJobTag(self._tag)


@dataclass
class LogBatches:
    """The results of a query, read from its log as they are added."""

    db: Database
    name: str
    log: LogReader
    place: Position

    @property
    def heard(self) -> FollowStatus:
        status = self.db.query_status(self.name)
        mark = self.log.watermark
        at = None
        if mark is not None:
            with suppress(OverflowError):
                at = _EPOCH + timedelta(microseconds=mark)
        return FollowStatus(at, str(status.phase), status.error)

    def take(self, seconds: float) -> pa.RecordBatch | None:
        """Read one frame at a time: no more is kept in memory."""
        until = time.monotonic() + seconds
        while True:
            for frame in self.log.read(self.place, self.log.end):
                self.place = frame.end
                if len(frame.rows):
                    return frame.rows
            if time.monotonic() >= until:
                return None
            time.sleep(_LOOK_SECONDS)


def _first(rows: pa.Table) -> StatementResult:
    """The first rows of an answer, and whether there were more."""
    note = _CUT if len(rows) > _MOST_ROWS else None
    return StatementResult(answer=ArrowAnswer(rows.slice(0, _MOST_ROWS)), note=note)


@contextmanager
def _held(batches: LogBatches) -> Iterator[LogBatches]:
    yield batches
