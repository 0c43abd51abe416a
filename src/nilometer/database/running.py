"""Named queries: they run in Spark on their own, and their results go to logs."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.database.back_off import BackOff
from nilometer.database.curable import may_be_cured
from nilometer.database.home import Home
from nilometer.database.known import APPEND, CHANGELOG, Known, Reading
from nilometer.database.limits import (
    is_temporary,
    limits_of,
    require_possible,
    results_error,
    state_error,
    stored_options,
)
from nilometer.database.query_run import QueryRun, RunState
from nilometer.database.query_status import HealthSample, QueryLimits, QueryPhase, QueryStatus
from nilometer.database.result_size import result_size
from nilometer.database.run_table import RunTable
from nilometer.database.statuses import QueryStatuses
from nilometer.database.supervisor import EVERY, Supervisor
from nilometer.errors import InputError, LimitError, NilometerError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.log.options import LogOptions
from nilometer.log.registrations import forget_readers, hold_readers, release_readers
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.spark.failures import explain_failure
from nilometer.spark.pools import started_in_pool
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.changes_plan import ChangesPlan, Plan
from nilometer.sql.ddl.nodes import Kind
from nilometer.sql.query_text import Statement, names_read
from nilometer.sql.sensor_conditions import reads_streams
from nilometer.sql.statements import read_query

_LOG: Final = logging.getLogger("nilometer.queries")
_STOP_WITHIN: Final = 30
_AT_ONCE: Final = 8
_BUDGET: Final = 500
"""At most so often (milliseconds) a query looks for more: what comes in between is worked
through together."""

Planner = Callable[[Statement, Reading], tuple[Plan, Known]]
"""Compiles a statement, and says what it reads."""


@dataclass(frozen=True)
class RunSettings:
    """How named queries are run."""

    session: SparkSession | None = None
    limits: QueryLimits = field(default_factory=QueryLimits)
    """Of queries that say nothing else."""
    most: int | None = None
    """How many may run at one time."""
    back_off: BackOff = field(default_factory=BackOff)
    look_every: float = EVERY
    clock: Callable[[], int] = now_micros
    chance: Callable[[], float] = random.random


class RunningQueries:
    """The named queries of a database that run in this process; for any number of threads."""

    def __init__(
        self, home: Home, plan: Planner, beats: int, settings: RunSettings | None = None
    ) -> None:
        self._home = home
        self._plan = plan
        self._beats = beats
        self._settings = settings or RunSettings()
        self._runs = RunTable(self._settings.most)
        self._statuses = QueryStatuses(home.catalog, self._runs, home.log_of)
        self._supervisor = Supervisor(self.look, self._settings.look_every)

    @property
    def handles(self) -> Mapping[str, StreamingQuery]:
        """Spark's own handles of those that run, by name."""
        return {run.name: run.handle for run in self._runs if run.handle is not None}

    @property
    def limits(self) -> QueryLimits:
        """The limits of queries that say nothing else."""
        return self._settings.limits

    def statuses(self) -> list[QueryStatus]:
        """How all queries were doing when they were looked at last; Spark is not asked."""
        return self._statuses.all()

    def status(self, name: str) -> QueryStatus:
        """How one query was doing when it was looked at last."""
        for one in self._statuses.all():
            if one.name.lower() == name.lower():
                return one
        raise _unknown(name)

    def health(self, name: str) -> list[HealthSample]:
        """What was seen of a query in the last ten minutes, oldest first."""
        run = self._runs.find(self._require(name).name)
        return [] if run is None else run.health.recent(self._settings.clock())

    def create(
        self,
        name: str,
        text: str,
        statement: Statement,
        *,
        if_not_exists: bool = False,
        limits: QueryLimits | None = None,
        temporary: bool = False,
    ) -> bool:
        """Keep a query and start it; False if it is there and that may be."""
        plan, known = self._plan(statement, _reading(name, statement))
        if not reads_streams(plan):
            raise InputError(
                "this query reads no stream, so there is nothing to continue",
                hint="run it as it is: SELECT …",
            )
        if statement.sql != text:
            plan, known = self._plan_text(name, text)
        kind = CHANGELOG if isinstance(plan, ChangesPlan) else APPEND
        limits = limits or self._settings.limits
        require_possible(limits, kind)
        options = stored_options(limits, is_temporary=temporary)
        catalog = self._home.catalog
        with self._runs.alone(name) as run:
            if if_not_exists and catalog.query(name) is not None:
                return False
            self._runs.take_place(run)
            if not catalog.create_query(
                name, text, kind, if_not_exists=if_not_exists, options=options
            ):
                return False
            try:
                self._start(run, self._require(name), plan, known)
            except BaseException:
                with suppress(Exception):
                    self._remove(run)
                raise
        return True

    def start(self, name: str) -> bool:
        """Start a query that is stopped, or that waits to be tried again; False if it runs."""
        with self._runs.alone(self._require(name).name) as run:
            query = self._require(name)
            if run.handle is not None and run.handle.isActive:
                return False
            self._start_anew(run, query)
            return True

    def stop(self, name: str) -> bool:
        """Stop a query; False if it does not run."""
        with self._runs.alone(self._require(name).name) as run:
            query = self._require(name)
            was_active = run.is_active
            self._halt(run)
            self._home.catalog.set_query_state(query.name, QueryState.STOPPED)
            run.state = RunState(QueryPhase.STOPPED)
            return was_active

    def drop(self, name: str) -> None:
        """Stop a query, and delete its results and all that it has kept."""
        with self._runs.alone(self._require(name).name) as run:
            self._require(name)
            self._remove(run)

    def alter(self, name: str, change: Callable[[QueryLimits], QueryLimits]) -> None:
        """Change the limits of a query; one that runs goes on with the new ones."""
        with self._runs.alone(self._require(name).name) as run:
            query = self._require(name)
            limits = change(limits_of(query))
            require_possible(limits, query.kind)
            options = stored_options(limits, is_temporary=is_temporary(query))
            self._home.catalog.set_query_options(query.name, options)
            if run.handle is not None and run.handle.isActive:
                self._halt(run)
                self._start_anew(run, self._require(name))

    def resume(self) -> list[str]:
        """Start all queries that ran when the database was closed; their names."""
        wanted = [q.name for q in self._home.catalog.queries() if q.state is QueryState.RUNNING]
        with ThreadPoolExecutor(_AT_ONCE, "resume") as threads:
            outcomes = dict(zip(wanted, threads.map(self._resumed, wanted), strict=True))
        failed = {name: one for name, one in outcomes.items() if isinstance(one, NilometerError)}
        if failed:
            raise InputError(
                f"some queries could not be started again: {', '.join(failed)}",
                detail="; ".join(f"{name}: {in_one_line(why)}" for name, why in failed.items()),
                hint="the others run; START QUERY tries one again, DROP QUERY gives it up",
            )
        return [name for name, started in outcomes.items() if started]

    def drop_temporary(self) -> None:
        """Drop the temporary queries that were left, but for those that others read."""
        queries = self._home.catalog.queries()
        kept = [read_query(q.text) for q in queries if not is_temporary(q)]
        needed = {name for one in kept for name in names_read(one)}
        for query in queries:
            if is_temporary(query) and query.name.lower() not in needed:
                self.drop(query.name)

    def close(self) -> None:
        """Stop them all; they count as running still, and `resume` starts them again."""
        runs = self._runs.close()
        self._supervisor.stop()
        with ThreadPoolExecutor(_AT_ONCE, "query stop") as threads:
            list(threads.map(self._end, runs))

    def reading(self, name: str) -> list[str]:
        """The queries, running or not, whose texts name a stream, a table or another query."""
        return [
            query.name
            for query in self._home.catalog.queries()
            if name.lower() in names_read(read_query(query.text))
        ]

    def look(self) -> None:
        """See how all queries are doing, and do what is due; those that are busy are left."""
        for run in self._runs:
            if run.lock.acquire(blocking=False):
                try:
                    if run.is_active:
                        self._look_at(run)
                except Exception:  # the others are to be looked at, too
                    _LOG.debug("the query %s could not be looked at", run.name, exc_info=True)
                finally:
                    run.lock.release()

    def _look_at(self, run: QueryRun) -> None:
        assert run.state is not None
        handle, now = run.handle, self._settings.clock()
        if run.state.is_due(now):
            self._supervisor.soon(lambda: self._try_again(run))
        elif handle is not None and handle.isActive:
            self._watch(run, handle)
        elif handle is not None and (error := handle.exception()) is not None:
            self._failed(run, explain_failure(error, "a stream"))
        elif handle is not None:  # somebody has stopped it in Spark: here it is still wanted
            self._halt(run)
            run.state = RunState(QueryPhase.WAITING)

    def _watch(self, run: QueryRun, handle: StreamingQuery) -> None:
        """Take in what Spark reports of a query that runs."""
        last, now = handle.lastProgress, self._settings.clock()
        if last is None:
            return
        reports = handle.recentProgress if run.health.wants_all(last) else [last]
        size = result_size(self._home.log_of(run.name))
        for sample in run.health.add(reports, size, now, _BUDGET):
            run.has_worked = True
            limits = limits_of(self._require(run.name))
            if (error := state_error(run.name, sample.state_bytes, limits)) is not None:
                self._failed(run, error)
                return
        assert run.state is not None
        if run.state.is_well_again(now, run.has_worked, self._settings.back_off):
            run.state = RunState(QueryPhase.RUNNING, run.state.started)
            self._home.catalog.set_query_state(run.name, QueryState.RUNNING)

    def _failed(self, run: QueryRun, error: NilometerError) -> None:
        """A query has failed: try it again later, or not at all."""
        query, settings = self._require(run.name), self._settings
        error = results_error(query.name, error, limits_of(query))
        why, now = in_one_line(error), settings.clock()
        before = run.state or RunState(QueryPhase.WAITING)
        if may_be_cured(error):
            self._stop_in_spark(run)
            self._hold(query.name)
            run.state = before.failed(why, now, settings.back_off, settings.chance())
            self._home.catalog.set_query_state(query.name, QueryState.RUNNING, error=why)
        else:
            self._halt(run)
            run.state = before.given_up(why)
            self._home.catalog.set_query_state(query.name, QueryState.FAILED, error=why)

    def _try_again(self, run: QueryRun) -> None:
        with suppress(InputError), self._runs.alone(run.name) as found:
            if found is run and run.state is not None and run.state.is_due(self._settings.clock()):
                self._attempt(run)

    def _attempt(self, run: QueryRun) -> NilometerError | None:
        """Start a query that ran before; what went wrong, if something did."""
        query = self._require(run.name)
        try:
            self._runs.take_place(run)
            planned = self._plan_text(query.name, query.text)
            self._start(run, query, *planned, before=run.state)
        except LimitError as error:
            return error
        except Exception as error:
            told = error if isinstance(error, NilometerError) else explain_failure(error)
            self._failed(run, told)
            return told
        return None

    def _resumed(self, name: str) -> bool | NilometerError:
        """Start a query of an earlier time; whether it was started, or what went wrong."""
        with self._runs.alone(name) as run:
            if run.is_active:
                return False
            self._supervisor.start()
            return self._attempt(run) or True

    def _start_anew(self, run: QueryRun, query: NamedQuery) -> None:
        """Start a query by hand: earlier failures count no more."""
        self._runs.take_place(run)
        try:
            self._start(run, query, *self._plan_text(query.name, query.text))
        except BaseException:
            if not run.is_active:
                self._runs.leave_place(run)
            raise

    def _plan_text(self, name: str, text: str) -> tuple[Plan, Known]:
        """Plan a query from its text alone, as every start does: its state belongs to that."""
        statement = read_query(text)
        return self._plan(statement, _reading(name, statement))

    def _start(
        self,
        run: QueryRun,
        query: NamedQuery,
        plan: Plan,
        known: Known,
        before: RunState | None = None,
    ) -> None:
        limits, location = limits_of(query), self._home.log_of(query.name)
        history = FOREVER if limits.history is None else limits.history
        destination = Destination(
            location,
            str(self._home.checkpoint_of(query.name)),
            LogOptions(history=history, disk=limits.results),
            {"processingTime": f"{_BUDGET} milliseconds"},
            query.name,
        )
        with started_in_pool(self._settings.session, f"query {run.place}"):
            run.handle = start_query(plan, known.frames, destination, self._beats)
        run.has_worked = False
        run.health.size = result_size(location)
        run.state = (before or RunState(QueryPhase.RUNNING)).begun(self._settings.clock())
        self._home.catalog.set_query_state(query.name, QueryState.RUNNING, error=run.state.error)
        self._supervisor.start()

    def _end(self, run: QueryRun) -> None:
        with run.lock, suppress(Exception):  # Spark may be gone already
            self._halt(run)

    def _remove(self, run: QueryRun) -> None:
        self._halt(run)
        for declared in self._home.catalog.names():
            forget_readers(self._home.log_of(declared.name), run.name)
        self._home.remove_query(run.name)
        self._home.catalog.drop(Kind.QUERY, run.name)
        self._runs.forget(run)

    def _halt(self, run: QueryRun) -> None:
        """Let a query run no more, nor be tried again."""
        was_active = run.is_active
        self._stop_in_spark(run)
        self._runs.leave_place(run)
        run.health.size = result_size(self._home.log_of(run.name))
        if was_active:
            for named in self._home.catalog.names():
                release_readers(self._home.log_of(named.name), run.name, now=now_micros())

    def _stop_in_spark(self, run: QueryRun) -> None:
        handle, run.handle = run.handle, None
        if handle is not None and handle.isActive:
            handle.stop()
            handle.awaitTermination(_STOP_WITHIN)

    def _hold(self, name: str) -> None:
        """Keep the sensors of a query that waits to be tried again."""
        for named in self._home.catalog.names():
            hold_readers(self._home.log_of(named.name), name, now=now_micros())

    def _require(self, name: str) -> NamedQuery:
        found = self._home.catalog.query(name)
        if found is None:
            raise _unknown(name)
        return found


def _unknown(name: str) -> InputError:
    return InputError(f"there is no query {name}", hint="SHOW QUERIES lists them")


def _reading(name: str, statement: Statement) -> Reading:
    return Reading(name, is_named=True, from_start=statement.from_start)
