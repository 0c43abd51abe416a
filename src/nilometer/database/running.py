"""Named queries: they run in Spark in the background, and their results go to logs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from typing import Final

from nilometer.database.alter_query import LimitChange, alter_query
from nilometer.database.auto_spread import SpreadJoin
from nilometer.database.bucket_options import (
    NOTHING_REQUESTED,
    RequestedBuckets,
    idle_cores,
)
from nilometer.database.home import Home
from nilometer.database.known import columns_read
from nilometer.database.lifecycle import (
    Planner,
    QueryLifecycle,
    unknown_query,
)
from nilometer.database.limits import (
    is_temporary,
    replacement_of,
    replaces,
)
from nilometer.database.new_queries import NewQueries, NewQuery
from nilometer.database.query_events import tell_not_spread, tell_spread
from nilometer.database.query_run import QueryHandle, QueryRun, RunState
from nilometer.database.query_status import (
    HealthSample,
    QueryPhase,
    QueryStatus,
)
from nilometer.database.run_settings import RunSettings
from nilometer.database.run_table import RunTable
from nilometer.database.spread import describe_spreads
from nilometer.database.statuses import QueryStatuses
from nilometer.database.supervisor import Supervisor
from nilometer.errors import InputError, NilometerError, SqlError, in_one_line
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.sensors.declaration import Declaration
from nilometer.spark.default_buckets import cores_of
from nilometer.spark.engine_status import EngineStatus
from nilometer.spark.hosted_query import HostedQuery
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.parse.query_text import Statement, names_read
from nilometer.sql.statements import read_query

_LOG: Final = logging.getLogger("nilometer.queries")
_AT_ONCE: Final = 8


class RunningQueries:
    """The named queries of a database that run in this process; thread-safe."""

    def __init__(
        self, home: Home, plan: Planner, beats: int, settings: RunSettings | None = None
    ) -> None:
        self._home = home
        self._settings = settings or RunSettings()
        self._runs = RunTable(self._settings.max_running)
        self._lifecycle = QueryLifecycle(home, plan, beats, self._settings, self._runs)
        self._new = NewQueries(home, self._lifecycle, self._runs, self._settings.limits)
        self._statuses = QueryStatuses(
            home.catalog, self._runs, home.log_of, home.manager.streams, self._settings.clock
        )
        self._supervisor = Supervisor(self.look, self._settings.look_every)

    @property
    def handles(self) -> Mapping[str, QueryHandle]:
        """Spark's own handles of the running queries, by name."""
        return {run.name: run.handle for run in self._runs if run.handle is not None}

    def statuses(self) -> list[QueryStatus]:
        """The status of every query, as far as known without asking Spark."""
        return self._statuses.all()

    def status(self, name: str) -> QueryStatus:
        """The last known status of one query; raises if there is none of this name."""
        status = self.find_status(name)
        if status is None:
            raise unknown_query(name)
        return status

    def find_status(self, name: str) -> QueryStatus | None:
        """The last known status of one query, or None if it does not exist."""
        return self._statuses.find(name)

    def explain(self, name: str) -> str:
        """The plan of a query as it runs, and how its rows are spread over buckets."""
        status = self.status(name)
        query, session = self._lifecycle.require(name), self._settings.session
        plan, _ = self._lifecycle.plan_as_kept(query)
        engine = f"Engine: {status.engine}"
        shares = None if status.shares_text is None else f"State: shared with {status.shares_text}"
        how = None if status.spread_text is None else f"Spread: {status.spread_text}"
        idle = None if session is None else idle_cores(query, cores_of(session))
        notes = (shares, how, idle, *describe_spreads(status.spreads), status.remedy)
        return "\n".join([explain_plan(plan), engine, *(one for one in notes if one is not None)])

    def health(self, name: str) -> list[HealthSample]:
        """The samples of a query from the last ten minutes, oldest first."""
        known = self._lifecycle.require(name).name
        return self.health_of([known]).get(known, [])

    def health_of(self, names: Iterable[str]) -> dict[str, list[HealthSample]]:
        """The same for several queries; those that have not run here have none."""
        runs, now = map(self._runs.find, names), self._settings.clock()
        return {run.name: run.health.recent(now) for run in runs if run is not None}

    def last_samples(self) -> dict[str, HealthSample]:
        """The newest sample of each query that has any, by name."""
        histories = ((run.name, run.health.samples) for run in self._runs)
        return {name: samples[-1] for name, samples in histories if samples}

    @property
    def engine_status(self) -> EngineStatus:
        """The status of the shared engine."""
        hosting = self._lifecycle.hosting
        return EngineStatus() if hosting is None else hosting.status

    @property
    def failures(self) -> int:
        """How many times queries have failed here."""
        return self._lifecycle.failures

    def create(self, new: NewQuery) -> bool:
        """Store a query and start it; False if it exists already and that is allowed."""
        is_new = self._new.create(new)
        self._supervisor.start()
        return is_new

    def check(self, name: str, statement: Statement) -> None:
        """Refuse a query that cannot run."""
        self._lifecycle.plan(name, statement)

    def check_with(self, statement: Statement, instead: Declaration | None) -> None:
        """The same, given a hypothetical declaration of a stream."""
        self._lifecycle.plan_with(statement, instead)

    def would_change(self, query: NamedQuery, after: Declaration) -> bool:
        """Whether a hypothetical declaration of a stream would change a query."""
        try:
            before = self._lifecycle.plan_again(query)
        except NilometerError:
            return False  # it already cannot be planned
        try:
            return columns_read(before[0]) != columns_read(
                self._lifecycle.plan_again(query, after)[0]
            )
        except SqlError:
            return True

    def rename(self, name: str, to: str) -> None:
        """Rename a query; it keeps running, as the running part does not know the name."""
        with self._runs.alone(self._lifecycle.require(name).name) as run:
            query = self._lifecycle.require(name)
            if self._home.catalog.query(replacement_of(query.name)) is not None:
                raise InputError(
                    f"query {query.name} is being replaced", hint="wait until that is done"
                )
            self._home.catalog.rename(ObjectKind.QUERY, name, to)
            self._runs.rename(run, to)
        self._home.deliveries.query_renamed(to)
        self._home.alerts.source_changed(to)

    def replace(self, name: str, by: str) -> bool:
        """Replace a query with one that has caught up; False if it has not yet."""
        with self._runs.alone(name) as old, self._runs.alone(by) as new:
            if not self._lifecycle.has_caught_up(new):
                return False
            query = self._lifecycle.require(name)
            files = self._home.files_of(name)
            self._lifecycle.let_go(old)
            self._home.catalog.replace_query(name, by)
            self._runs.rename(new, query.name)
            self._lifecycle.drop_state(query)
            self._home.delete(files)
            return True

    def replacements(self) -> list[tuple[str, str]]:
        """The queries that are being replaced, each with its replacement."""
        pairs = [(replaces(one), one.name) for one in self._home.catalog.queries()]
        return [(old, new) for old, new in pairs if old is not None]

    def start(self, name: str) -> bool:
        """Start a query that is stopped or waits for a retry; False if it is already running."""
        with self._runs.alone(self._lifecycle.require(name).name) as run:
            if run.handle is not None and run.handle.isActive:
                return False
            self._begin(run)
        return True

    def _begin(self, run: QueryRun) -> None:
        query = self._lifecycle.require(run.name)
        planned = self._lifecycle.plan_again(query)
        self._lifecycle.begin_now(run, query, planned)
        self._supervisor.start()

    def stop(self, name: str) -> bool:
        """Stop a query; False if it was not running."""
        with self._runs.alone(self._lifecycle.require(name).name) as run:
            self._lifecycle.require(name)
            was_active = run.is_active
            self._lifecycle.halt(run)
            self._home.catalog.set_query_state(run.name, QueryState.STOPPED)
            run.state = RunState(QueryPhase.STOPPED)
            return was_active

    def drop(self, name: str) -> None:
        """Stop a query, and delete its results and its state."""
        with self._runs.alone(self._lifecycle.require(name).name) as run:
            self._lifecycle.require(name)
            self._lifecycle.remove(run)
        if self._home.catalog.query(replacement_of(name)) is not None:
            self.drop(replacement_of(name))

    def alter(
        self, name: str, change: LimitChange, requested: RequestedBuckets = NOTHING_REQUESTED
    ) -> None:
        """Change the limits of a query, or its buckets; a running one goes on."""
        with self._runs.alone(self._lifecycle.require(name).name) as run:
            is_running = run.handle is not None and run.handle.isActive
            try:
                alter_query(run, change, requested, self._home, self._lifecycle)
            finally:
                if is_running and not (run.handle is not None and run.handle.isActive):
                    self._begin(run)

    def resume(self) -> list[str]:
        """Restart all queries that were running when the database was closed; their names."""
        names = [q.name for q in self._home.catalog.queries() if q.state is QueryState.RUNNING]
        hosting = self._lifecycle.hosting
        at_once = nullcontext() if hosting is None or not names else hosting.together()
        with at_once, ThreadPoolExecutor(_AT_ONCE, "resume") as threads:
            outcomes = dict(zip(names, threads.map(self._resumed, names), strict=True))
        failed = {name: one for name, one in outcomes.items() if isinstance(one, NilometerError)}
        if failed:
            raise InputError(
                f"some queries could not be started again: {', '.join(failed)}",
                detail="; ".join(f"{name}: {in_one_line(why)}" for name, why in failed.items()),
                hint="the others are running; START QUERY retries one, DROP QUERY removes it",
            )
        return [name for name, started in outcomes.items() if started]

    def _resumed(self, name: str) -> bool | NilometerError:
        """Start a query of an earlier process; returns whether it was started, or the error."""
        with self._runs.alone(name) as run:
            if run.is_active:
                return False
            self._supervisor.start()
            return self._lifecycle.attempt(run) or True

    def warm_up(self) -> None:
        """Start the engine before the first query needs it."""
        if self._lifecycle.hosting is not None:
            self._lifecycle.hosting.warm_up()

    def drop_temporary(self) -> None:
        """Drop leftover temporary queries, except those that others read."""
        queries = self._home.catalog.queries()
        statements = [read_query(q.text) for q in queries if not is_temporary(q)]
        needed = {name for one in statements for name in names_read(one)}
        for query in queries:
            if is_temporary(query) and query.name.lower() not in needed:
                self.drop(query.name)

    def close(self) -> None:
        """Stop all queries; they still count as running, and `resume` restarts them."""
        runs = self._runs.close()
        self._supervisor.stop()
        if self._lifecycle.hosting is not None:
            with suppress(Exception):  # Spark may be gone already
                self._lifecycle.hosting.close()
        own = [run for run in runs if not isinstance(run.handle, HostedQuery)]
        with ThreadPoolExecutor(_AT_ONCE, "query stop") as threads:
            list(threads.map(self._end, own))

    def _end(self, run: QueryRun) -> None:
        with run.lock, suppress(Exception):  # Spark may be gone already
            self._lifecycle.halt(run)

    def reading(self, name: str) -> list[str]:
        """The queries, running or not, whose texts name a stream, a table or another query."""
        return [
            query.name
            for query in self._home.catalog.queries()
            if name.lower() in names_read(read_query(query.text))
        ]

    def look(self) -> None:
        """Check on all queries and do what is due; busy ones are skipped."""
        if self._lifecycle.hosting is not None:
            self._lifecycle.hosting.look()
        for run in self._runs:
            if run.replaces is not None and run.is_active:
                self._supervisor.soon(partial(self._try_replacing, run.replaces, run.name))
            if run.lock.acquire(blocking=False):
                try:
                    if run.is_active and self._lifecycle.look_at(run):
                        self._supervisor.soon(partial(self._try_again, run))
                    self._look_at_hot_key(run)
                except Exception:  # the others must be checked, too
                    _LOG.debug("the query %s could not be looked at", run.name, exc_info=True)
                finally:
                    run.lock.release()
        self._statuses.look()

    def _try_replacing(self, name: str, by: str) -> None:
        with suppress(NilometerError):  # one of them was dropped
            if (name, by) in self.replacements():
                self.replace(name, by)

    def _look_at_hot_key(self, run: QueryRun) -> None:
        """Have a hot key spread that has lasted, where the database does so by itself."""
        join, now = run.join, self._settings.clock()
        if join is None or not join.by_itself:
            return
        parts = join.more_parts(run.health.counter.spreads(now)) if run.is_active else None
        if run.hot.is_due(now, is_hot=parts is not None) and parts is not None:
            self._supervisor.soon(partial(self._spread, run.name, join, parts))

    def _spread(self, name: str, join: SpreadJoin, parts: int) -> None:
        try:
            with self._runs.alone(name) as run:
                if run.join == join:  # nobody has changed it meanwhile
                    requested = RequestedBuckets(spread=parts, by_itself=True)
                    self.alter(name, lambda limits: limits, requested)
                    tell_spread(name, parts)
        except NilometerError as error:
            tell_not_spread(name, error)
        except Exception:
            _LOG.exception("the hot key of query %s could not be spread", name)

    def _try_again(self, run: QueryRun) -> None:
        with suppress(InputError), self._runs.alone(run.name) as current:
            is_due = run.state is not None and run.state.is_due(self._settings.clock())
            if current is run and is_due:
                self._lifecycle.attempt(run)
