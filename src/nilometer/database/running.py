"""Named queries: they run in Spark on their own, and their results go to logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery

from nilometer.database.home import Home
from nilometer.database.known import APPEND, CHANGELOG, Known, Reading
from nilometer.errors import InputError, NilometerError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.log.options import LogOptions
from nilometer.log.registrations import forget_readers, release_readers
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.spark.failures import explain_failure
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.changes_plan import ChangesPlan, Plan
from nilometer.sql.ddl.nodes import Kind
from nilometer.sql.query_text import Statement, names_read
from nilometer.sql.sensor_conditions import reads_streams
from nilometer.sql.statements import read_query

_STOP_WITHIN: Final = 30
_EVERY: Final = "500 milliseconds"
"""At most so often a query looks for more: what comes in between is worked through together."""

Planner = Callable[[Statement, Reading], tuple[Plan, Known]]
"""Compiles a statement, and says what it reads."""


class RunningQueries:
    """The named queries of a database that run in this process."""

    def __init__(self, home: Home, plan: Planner, beats: int) -> None:
        self._home = home
        self._plan = plan
        self._beats = beats
        self._running: dict[str, StreamingQuery] = {}

    @property
    def handles(self) -> Mapping[str, StreamingQuery]:
        """Spark's own handles of those that were started here, by name."""
        return dict(self._running)

    def create(self, name: str, text: str, statement: Statement, *, if_not_exists: bool) -> bool:
        """Keep a query and start it; False if it is there and that may be."""
        catalog = self._home.catalog
        plan, _ = self._plan(statement, _reading(name, statement))
        if not reads_streams(plan):
            raise InputError(
                "this query reads no stream, so there is nothing to continue",
                hint="run it as it is: SELECT …",
            )
        plan, known = self._plan_text(name, text)
        kind = CHANGELOG if isinstance(plan, ChangesPlan) else APPEND
        if not catalog.create_query(name, text, kind, if_not_exists=if_not_exists):
            return False
        try:
            self._start(name, plan, known)
        except BaseException:
            with suppress(Exception):
                self.drop(name)
            raise
        return True

    def start(self, name: str) -> bool:
        """Start a query that is stopped; False if it runs."""
        query = self._require(name)
        if self.is_active(query.name):
            return False
        self._start(query.name, *self._plan_text(query.name, query.text))
        return True

    def stop(self, name: str) -> bool:
        """Stop a query; False if it does not run."""
        query = self._require(name)
        was_active = self._halt(query.name)
        self._home.catalog.set_query_state(query.name, QueryState.STOPPED)
        return was_active

    def drop(self, name: str) -> None:
        """Stop a query, and delete its results and all that it has kept."""
        query = self._require(name)
        self._halt(query.name)
        for declared in self._home.catalog.names():
            forget_readers(self._home.log_of(declared.name), query.name)
        self._home.remove_query(query.name)
        self._home.catalog.drop(Kind.QUERY, query.name)

    def resume(self) -> list[str]:
        """Start all queries that ran when the database was closed; their names."""
        wanted = [q.name for q in self._home.catalog.queries() if q.state is QueryState.RUNNING]
        started, failed = [], {}
        for name in wanted:
            try:
                if self.start(name):
                    started.append(name)
            except NilometerError as error:
                failed[name] = error.message
        if failed:
            raise InputError(
                f"some queries could not be started again: {', '.join(failed)}",
                detail="; ".join(f"{name}: {why}" for name, why in failed.items()),
                hint="the others run; START QUERY tries one again, DROP QUERY gives it up",
            )
        return started

    def close(self) -> None:
        """Stop them all; they count as running still, and `resume` starts them again."""
        for name in list(self._running):
            self._halt(name)

    def is_active(self, name: str) -> bool:
        handle = self._running.get(name)
        return handle is not None and handle.isActive

    def reading(self, name: str) -> list[str]:
        """The queries, running or not, whose texts name a stream, a table or another query."""
        return [
            query.name
            for query in self._home.catalog.queries()
            if name.lower() in names_read(read_query(query.text))
        ]

    def look(self) -> list[NamedQuery]:
        """All queries as they are now; one that has failed is stopped, with its error."""
        for name, handle in list(self._running.items()):
            if not handle.isActive and (error := handle.exception()) is not None:
                why = in_one_line(explain_failure(error, "a stream"))
                self._home.catalog.set_query_state(name, QueryState.STOPPED, error=why)
                del self._running[name]
                self._release(name)
        return self._home.catalog.queries()

    def _plan_text(self, name: str, text: str) -> tuple[Plan, Known]:
        """Plan a query from its text alone, as every start does: its state belongs to that."""
        statement = read_query(text)
        return self._plan(statement, _reading(name, statement))

    def _start(self, name: str, plan: Plan, known: Known) -> None:
        destination = Destination(
            self._home.log_of(name),
            str(self._home.checkpoint_of(name)),
            LogOptions(history=FOREVER),
            {"processingTime": _EVERY},
            name,
        )
        self._running[name] = start_query(plan, known.frames, destination, self._beats)
        self._home.catalog.set_query_state(name, QueryState.RUNNING)

    def _halt(self, name: str) -> bool:
        handle = self._running.pop(name, None)
        if handle is None or not handle.isActive:
            return False
        handle.stop()
        handle.awaitTermination(_STOP_WITHIN)
        self._release(name)
        return True

    def _release(self, name: str) -> None:
        """Let logs know that a query reads them no more at present: its sensors are let go."""
        for named in self._home.catalog.names():
            release_readers(self._home.log_of(named.name), name, now=now_micros())

    def _require(self, name: str) -> NamedQuery:
        found = self._home.catalog.query(name)
        if found is None:
            raise InputError(f"there is no query {name}", hint="SHOW QUERIES lists them")
        return found


def _reading(name: str, statement: Statement) -> Reading:
    return Reading(name, is_named=True, from_start=statement.from_start)
