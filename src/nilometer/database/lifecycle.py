"""The lifecycle of a named query: it starts, fails, is retried, is stopped.

The caller must hold the lock of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.database.auto_spread import join_of
from nilometer.database.bucket_options import buckets_of, hosted_id, moved_of, parting_of
from nilometer.database.change_buckets import change_buckets, moves_rows, require_spreadable
from nilometer.database.curable import may_be_cured
from nilometer.database.home import Home
from nilometer.database.hosting import Hosting
from nilometer.database.known import Known, Reading
from nilometer.database.limits import (
    begins_at_start,
    limits_of,
    replaces,
    results_error,
    state_error,
)
from nilometer.database.query_events import (
    tell_begun,
    tell_dead_letters,
    tell_failed,
    tell_well,
)
from nilometer.database.query_run import QueryHandle, QueryRun, RunState
from nilometer.database.query_status import OnError, QueryLimits, QueryPhase
from nilometer.database.result_size import result_size
from nilometer.database.run_settings import RunSettings
from nilometer.database.run_table import RunTable
from nilometer.database.stalls import Progress
from nilometer.engine.plan import EnginePlan
from nilometer.errors import InputError, LimitError, LogError, NilometerError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.log.dead_letters import dead_letters_at
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import find_reader, forget, hold_readers, readers_of, release
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.stored_queries import KNOWN, NamedQuery, QueryState
from nilometer.sensors.declaration import Declaration
from nilometer.spark.failures import explain_failure
from nilometer.spark.hosted_query import HostedQuery
from nilometer.spark.idle_monitors import end_idle_monitors
from nilometer.spark.pools import started_in_pool
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.plan.changes_plan import Plan, sources_of
from nilometer.sql.rules.spread_joins import spread_joins
from nilometer.sql.statements import read_query

_STOP_WITHIN: Final = 30
_BEGIN: Final = Position(0, 0)
_TIDY_AFTER: Final = 20
MOST_OWN: Final = 32
"""How many queries may each have a Spark streaming query, where their number is limited."""
_FEW: Final = 50
_LOOK_PAUSE: Final = 5_000
"""With each query beyond a few, every query is polled this much (microseconds) less often."""
_BUDGET: Final = 500
"""The shortest time (milliseconds) between polls for input; rows that arrive in between are
processed together."""

Planned = tuple[Plan, Known]
Planner = Callable[[Statement, Reading, int | None], Planned]
"""Compiles a statement for a number of buckets (None: Spark's default); also what it reads."""


class QueryLifecycle:
    """Moves runs from one phase to the next, in Spark and in the catalog."""

    def __init__(
        self, home: Home, plan: Planner, beats: int, settings: RunSettings, runs: RunTable
    ) -> None:
        self._home = home
        self._plan = plan
        self._beats = beats
        self._settings = settings
        self._runs = runs
        self._stops = 0
        self.failures = 0
        """How many times queries have failed."""
        session = settings.session
        self.hosting = None if session is None else Hosting(home, session, beats)
        """The engine that queries share; None: without Spark."""

    def require(self, name: str) -> NamedQuery:
        """The query of this name; raises if there is none."""
        query = self._home.catalog.query(name)
        if query is None:
            raise unknown_query(name)
        return query

    def plan(self, reader: str, statement: Statement, buckets: int | None = None) -> Planned:
        """The plan of a query that logs know under this reader name."""
        reading = Reading(reader, True, statement.from_start, begins_now=True)
        return self._plan(statement, reading, buckets)

    def plan_for_engine(self, planned: Planned, limits: QueryLimits) -> EnginePlan | str:
        """A plan made for one bucket, for the database's engine, or why that cannot run it."""
        assert self.hosting is not None
        return self.hosting.plan(*planned, limits)

    def plan_again(self, query: NamedQuery, instead: Declaration | None = None) -> Planned:
        """Plan a query as it was planned when it started, on whatever machine.

        `instead`: a hypothetical declaration of a stream.
        """
        statement, columns = read_query(query.text), query.options.get(KNOWN, {})
        starts = begins_at_start(query) or statement.from_start
        reading = Reading(query.reader, True, starts, instead is None, columns, instead)
        return self._plan_kept(query, statement, reading)

    def plan_as_kept(self, query: NamedQuery) -> Planned:
        """The same, only to look at."""
        reading = Reading(columns=query.options.get(KNOWN, {}))
        return self._plan_kept(query, read_query(query.text), reading)

    def _plan_kept(self, query: NamedQuery, statement: Statement, reading: Reading) -> Planned:
        plan, known = self._plan(statement, reading, buckets_of(query))
        parting = parting_of(query.options)
        return (plan if parting is None else spread_joins(plan, parting)), known

    def plan_with(self, statement: Statement, instead: Declaration | None) -> Planned:
        """The plan of a text, given a hypothetical declaration of a stream."""
        return self._plan(statement, Reading(instead=instead), 1)

    def begin(
        self,
        run: QueryRun,
        query: NamedQuery,
        planned: Planned,
        before: RunState | None = None,
        engine_plan: EnginePlan | None = None,
    ) -> None:
        """Start a query; if it starts anew, earlier failures no longer count.

        `engine_plan`: its plan for the shared engine, if there is one already.
        """
        self._runs.reserve(run)
        location = self._home.log_of(query.name)
        run.limits = limits_of(query)
        destination = self._destination(query, location, run.limits)
        plan, known = planned
        if hosted_id(query) is not None:
            assert self.hosting is not None
            hosted = engine_plan or self.plan_for_engine(planned, run.limits)
            run.handle = self.hosting.start(query, hosted, known, destination, run.limits)
        else:
            self._require_room(run)
            with started_in_pool(self._settings.session, f"query {run.place}"):
                run.handle = start_query(plan, known.inputs, destination, self._beats)
        run.has_worked, run.join = False, join_of(query, plan)
        run.replaces = replaces(query)
        if run.replaces is not None and not run.ends:
            run.ends = {log: LogReader.open(log).end for log, _ in self._readers_of(run)}
        run.progress = self._progress(run, query, _inputs(plan))
        run.health.begin(result_size(location))
        run.state = (before or RunState(QueryPhase.RUNNING)).begun(self._settings.clock())
        self._keep_state(query.name, QueryState.RUNNING, run.state)

    def change_buckets(self, run: QueryRun, query: NamedQuery, after: NamedQuery) -> None:
        """Have a query go on in other buckets when it starts again; if its rows move, it stops."""
        require_spreadable(after, self.plan_again)
        before, planned = self.plan_again(query), self.plan_again(after)
        if not moves_rows(after, before, planned):
            self._home.catalog.set_query_options(query.name, dict(after.options))
            run.join = join_of(after, planned[0])
            return
        self.halt(run)
        destination = self._destination(query, self._home.log_of(query.name), limits_of(query))
        options = change_buckets(after, before, destination, self._beats)
        self._home.catalog.set_query_options(query.name, options)

    def _progress(self, run: QueryRun, query: NamedQuery, inputs: tuple[str, ...]) -> Progress:
        """The progress of a query that has read nothing yet; its readers will report offsets."""
        if isinstance(run.handle, HostedQuery):
            return Progress(inputs)
        log_of = self._home.log_of
        known = ((name, readers_of(log_of(name), query.reader)) for name in inputs)
        readers = tuple((name, one) for name, registered in known for one in registered)
        return Progress(inputs, readers=readers)

    def _require_room(self, run: QueryRun) -> None:
        """Refuse another Spark query where the number of queries is limited."""
        others = [one.handle for one in self._runs if one is not run and one.is_active]
        own = sum(isinstance(one, StreamingQuery) for one in others)
        if self._settings.max_running is not None and own >= MOST_OWN:
            raise LimitError(
                f"{own} queries have a streaming query of their own in Spark, which is the maximum",
                hint="let queries share an engine: leave out engine = 'own'; or stop one",
            )

    def begin_now(
        self,
        run: QueryRun,
        query: NamedQuery,
        planned: Planned,
        engine_plan: EnginePlan | None = None,
    ) -> None:
        """Start a query for a waiting caller; an error that may be cured is retried once."""
        try:
            self.begin(run, query, planned, engine_plan=engine_plan)
        except (PySparkException, Py4JError) as error:
            if not may_be_cured(explain_failure(error)):
                raise
            self.begin(run, query, planned, engine_plan=engine_plan)

    def _destination(self, query: NamedQuery, location: str, limits: QueryLimits) -> Destination:
        history = FOREVER if limits.history is None else limits.history
        return Destination(
            location,
            str(self._home.checkpoint_of(query.name)),
            LogOptions(history=history, disk=limits.results),
            {"processingTime": f"{_BUDGET} milliseconds"},
            query.name,
            None if limits.on_error is OnError.STOP else dead_letters_at(location),
            moved_of(query),
        )

    def attempt(self, run: QueryRun) -> NilometerError | None:
        """Start a query that ran before; returns the error, if any."""
        query = self.require(run.name)
        try:
            self._runs.reserve(run)
            before = run.state or RunState(
                QueryPhase.WAITING, error=query.error, failures=query.failures
            )
            self.begin(run, query, self.plan_again(query), before)
            tell_begun(run.name, run.state)
        except LimitError as error:
            return error
        except Exception as error:
            failure = error if isinstance(error, NilometerError) else explain_failure(error)
            self._failed(run, failure)
            return failure
        return None

    def look_at(self, run: QueryRun) -> bool:
        """Check on a query; returns whether it is time to retry it."""
        assert run.state is not None
        handle = run.handle
        if handle is None:
            return run.state.is_due(self._settings.clock())
        if handle.isActive:
            self._watch(run, handle)
        elif (error := handle.exception()) is not None:
            if not isinstance(error, NilometerError):
                error = explain_failure(error, "a stream")
            self._failed(run, error)
        else:  # it was stopped in Spark, but should still run
            self.halt(run)
            run.state = RunState(QueryPhase.WAITING)
        return False

    def _watch(self, run: QueryRun, handle: QueryHandle) -> None:
        """Record what is reported about a running query."""
        last, now = handle.lastProgress, self._settings.clock()
        if last is None or now < run.look_after:
            return
        run.look_after = now + _LOOK_PAUSE * max(0, len(self._runs) - _FEW)
        reports = handle.recentProgress if run.health.wants_all(last) else [last]
        size = result_size(self._home.log_of(run.name))
        tell_dead_letters(run.name, size.dead_letters - run.health.size.dead_letters)
        for sample in run.health.add(reports, size, now, _BUDGET):
            run.has_worked = True
            if (error := state_error(run.name, sample.state_bytes, run.limits)) is not None:
                self._failed(run, error)
                return
        assert run.state is not None
        if run.state.is_well_again(now, run.has_worked, self._settings.back_off):
            tell_well(run.name, run.state.failures)
            run.state = RunState(QueryPhase.RUNNING, run.state.started)
            self._home.catalog.set_query_state(run.name, QueryState.RUNNING)

    def _failed(self, run: QueryRun, error: NilometerError) -> None:
        """Record that a query has failed: it is retried later, or not at all."""
        query, settings = self.require(run.name), self._settings
        error = results_error(query.name, error, run.limits)
        why, now = in_one_line(error), settings.clock()
        self.failures += 1
        before = run.state or RunState(QueryPhase.WAITING, failures=query.failures)
        if may_be_cured(error):
            run.state = before.failed(why, now, settings.back_off, settings.chance())
            tell_failed(query.name, run.state, now)
            self._stop_in_spark(run)
            with suppress(OSError, LogError):  # on a full disk the readers stay as they are
                self._hold(query.reader)
            self._keep_state(query.name, QueryState.RUNNING, run.state)
        else:
            tell_failed(query.name, before.given_up(why), now)
            try:
                self.halt(run)
            finally:  # a full disk may prevent that, but the query does not run either way
                run.state = before.given_up(why)
            self._keep_state(query.name, QueryState.FAILED, run.state)

    def _keep_state(self, name: str, state: QueryState, run: RunState) -> None:
        """Store the state in the catalog, for the next start."""
        self._home.catalog.set_query_state(name, state, error=run.error, failures=run.failures)

    def has_caught_up(self, run: QueryRun) -> bool:
        """Whether a query has processed what its logs held when it started."""
        if not run.is_active or not run.ends:
            return False
        read = [(log, find_reader(log, reader)) for log, reader in self._readers_of(run)]
        return all(
            one is not None and one.position >= run.ends.get(log, _BEGIN) for log, one in read
        )

    def let_go(self, run: QueryRun) -> None:
        """Stop a query that is being replaced, and remove it as a reader of logs."""
        readers = self._readers_of(run)
        self.halt(run)
        for log, reader in readers:
            forget(log, reader)

    def drop_state(self, query: NamedQuery) -> None:
        """Delete what the engine keeps of a query."""
        if self.hosting is not None:
            self.hosting.drop(query)

    def remove(self, run: QueryRun) -> None:
        """Stop a query, and delete its results and its state."""
        query, readers = self._home.catalog.query(run.name), self._readers_of(run)
        if query is not None:
            self.drop_state(query)
        self._stop_in_spark(run)
        for log, reader in readers:
            forget(log, reader)
        self._home.delete(self._home.files_of(run.name))
        self._home.catalog.drop(ObjectKind.QUERY, run.name)
        self._runs.forget(run)

    def halt(self, run: QueryRun) -> None:
        """Stop a query, and do not retry it."""
        readers = self._readers_of(run) if run.is_active else []
        self._stop_in_spark(run)
        self._runs.release(run)
        run.health.size = result_size(self._home.log_of(run.name))
        for log, reader in readers:
            release(log, reader, now=now_micros())

    def _readers_of(self, run: QueryRun) -> list[tuple[str, str]]:
        """The readers of a query, each with its log."""
        if isinstance(run.handle, HostedQuery) and run.handle.logs:
            return list(run.handle.logs)
        query = self._home.catalog.query(run.name)
        known = run.name if query is None else query.reader
        logs = [self._home.log_of(named.name) for named in self._home.catalog.names()]
        return [(log, reader) for log in logs for reader in readers_of(log, known)]

    def _stop_in_spark(self, run: QueryRun) -> None:
        handle, run.handle = run.handle, None
        if handle is not None and (handle.isActive or isinstance(handle, HostedQuery)):
            handle.stop()
            handle.awaitTermination(_STOP_WITHIN)
            self._tidy()

    def _tidy(self) -> None:
        """Clean up what stopped queries have left in Spark, after a number of them."""
        self._stops += 1
        session = self._settings.session
        if self._stops % _TIDY_AFTER == 0 and session is not None:
            with suppress(Exception):  # it uses Spark's internals, and nothing depends on it
                end_idle_monitors(session)

    def _hold(self, reader: str) -> None:
        """Keep the sensors of a query connected while it waits for a retry."""
        for named in self._home.catalog.names():
            hold_readers(self._home.log_of(named.name), reader, now=now_micros())


def _inputs(plan: Plan) -> tuple[str, ...]:
    """The streams and queries that a plan reads, each once."""
    streams = (one.relation for one in sources_of(plan) if not one.is_table)
    return tuple(dict.fromkeys(one.name for one in streams if one.rows is None))


def unknown_query(name: str) -> InputError:
    """The error for the name of a query that does not exist."""
    return InputError(f"there is no query {name}", hint="SHOW QUERIES lists them")
