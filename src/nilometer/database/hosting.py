"""The engine of a database: which queries run in it, and how they get there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from nilometer.database.bucket_options import hosted_id
from nilometer.database.home import Home
from nilometer.database.known import Known
from nilometer.database.query_status import QueryLimits
from nilometer.engine.plan import EnginePlan
from nilometer.engine.plan_set import PlanEntry
from nilometer.errors import CheckpointError
from nilometer.log.options import Fsync
from nilometer.log.writer import make_log
from nilometer.sensors.catalog.stored_queries import NamedQuery
from nilometer.spark.engine import SharedEngine
from nilometer.spark.engine_status import EngineStatus
from nilometer.spark.host_query import engine_plan, host_plan
from nilometer.spark.hosted_query import HostedQuery
from nilometer.spark.start_query import Destination
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.plan.changes_plan import Plan
from nilometer.upkeep.places import ENGINE


class Hosting:
    """The engine, created when the first query needs it; thread-safe."""

    def __init__(self, home: Home, session: SparkSession, beats: int) -> None:
        self._home = home
        self._session = session
        self._beats = beats
        self._lock = threading.Lock()
        self._engine: SharedEngine | None = None

    @property
    def engine(self) -> SharedEngine:
        with self._lock:
            if self._engine is None:
                ids = {hosted_id(one) for one in self._home.catalog.queries()}
                known = {one for one in ids if one is not None}
                folder = self._home.folder / ENGINE
                self._engine = SharedEngine(
                    self._session, folder, self._beats, known, self._home.logs
                )
            return self._engine

    def plan(self, plan: Plan, known: Known, limits: QueryLimits) -> EnginePlan | str:
        """A plan for the shared engine, or why the query needs one of its own."""
        try:
            return engine_plan(plan, known.inputs, limits.shed_by)
        except NotInSubsetError as error:
            return error.message

    def start(
        self,
        query: NamedQuery,
        plan: EnginePlan | str,
        known: Known,
        destination: Destination,
        limits: QueryLimits,
    ) -> HostedQuery:
        """Start a query beside the others."""
        name = hosted_id(query)
        assert name is not None
        if isinstance(plan, str):
            raise CheckpointError(
                f"the query {query.name} can no longer run in the shared engine",
                detail=plan,
                hint="drop it and create it again",
            )
        log_id = make_log(destination.location, plan.layout)
        hosted = host_plan(plan, known.inputs.logs, destination.dead_letters, limits.shed)
        entry = PlanEntry(
            name,
            0,
            None,
            results=destination.location,
            log_id=log_id,
            fsync=Fsync.REPLAYED,
            disk=destination.options.disk,
            history=destination.options.history,
            dead_letters=destination.dead_letters,
            logs=[(one.log, one.name) for one in hosted.feeds],
            needs_now=plan.needs_now,
        )
        handle = self.engine.host(name, hosted, entry)
        handle.name = query.name
        return handle

    def drop(self, query: NamedQuery) -> None:
        """Delete what the engine keeps of a query."""
        name = hosted_id(query)
        if name is not None:
            self.engine.drop(name)

    @property
    def status(self) -> EngineStatus:
        """The status of the engine, if there is one."""
        return EngineStatus() if self._engine is None else self._engine.status

    def warm_up(self) -> None:
        """Start the engine before the first query needs it."""
        self.engine.warm_up()

    def look(self) -> None:
        """Update the status of the queries."""
        if self._engine is not None:
            self._engine.look()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Start the queries of this block together."""
        with self.engine.together():
            yield

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
