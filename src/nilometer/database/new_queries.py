"""New named queries: planned, given an engine, stored and started."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

from nilometer.database.alter_query import LimitChange
from nilometer.database.bucket_options import (
    NOTHING_REQUESTED,
    RequestedBuckets,
    parting_of,
    requested_options,
)
from nilometer.database.change_buckets import require_spreadable
from nilometer.database.home import Home
from nilometer.database.known import APPEND, CHANGELOG, columns_read
from nilometer.database.lifecycle import Planned, QueryLifecycle
from nilometer.database.limits import require_no_shedding, stored_options, usual_for
from nilometer.database.query_status import EngineChoice, QueryLimits
from nilometer.database.run_table import RunTable
from nilometer.engine.plan import EnginePlan
from nilometer.errors import InputError, NoStreamError
from nilometer.sensors.catalog.stored_queries import NamedQuery
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.plan.changes_plan import Plan, emits_changes, reads_tables_alone
from nilometer.sql.rules.change_joins import in_buckets
from nilometer.sql.rules.spread_joins import spread_joins


@dataclass(frozen=True)
class NewQuery:
    """A query to be created."""

    name: str
    statement: Statement
    if_not_exists: bool = False
    limits: LimitChange | None = None
    requested: RequestedBuckets = NOTHING_REQUESTED
    temporary: bool = False
    owner: str | None = None
    in_place_of: str | None = None
    """The query that it replaces once it has caught up; so it starts at the oldest rows."""

    @property
    def started(self) -> Statement:
        """The statement, with where it starts."""
        is_early = self.statement.from_start or self.in_place_of is not None
        return replace(self.statement, from_start=is_early)


class NewQueries:
    """Creates named queries; thread-safe."""

    def __init__(
        self, home: Home, lifecycle: QueryLifecycle, runs: RunTable, limits: QueryLimits
    ) -> None:
        self._home = home
        self._lifecycle = lifecycle
        self._runs = runs
        self._usual = limits

    def create(self, new: NewQuery) -> bool:
        """Store a query and start it; False if it exists already and that is allowed."""
        name, alterations = new.name, self._home.catalog.alterations
        reader = self._free_reader(name)
        planned = self._planned(reader, new.started, new.requested.buckets)
        kind = CHANGELOG if emits_changes(planned[0]) else APPEND
        limits = self._limits(kind, new.limits)
        planned, engine_plan = self._choose_engine(planned, limits, new.requested)
        split = requested_options(
            {"buckets": planned[0].buckets}, new.requested, lambda: planned[0]
        )
        if (parting := parting_of(split)) is not None:
            planned = spread_joins(planned[0], parting), planned[1]
        options = stored_options(
            limits,
            is_temporary=new.temporary,
            buckets=split,
            owner=new.owner,
            hosted=None if engine_plan is None else uuid4().hex,
            reader=None if reader == name else reader,
            replaces=new.in_place_of,
        )
        catalog = self._home.catalog
        with self._runs.alone(name) as run:
            if new.if_not_exists and catalog.query(name) is not None:
                return False
            self._runs.reserve(run)
            catalog.create_query(name, new.statement.sql, kind, options=options)
            try:
                require_spreadable(self._lifecycle.require(name), self._lifecycle.plan_again)
                if catalog.alterations != alterations:
                    self._require_same(self._lifecycle.require(name), planned[0])
                self._home.delete(self._home.files_of(name))  # another's, which ended in between
                self._lifecycle.begin_now(run, self._lifecycle.require(name), planned, engine_plan)
            except BaseException:
                with suppress(Exception):
                    self._lifecycle.remove(run)
                raise
        return True

    def _require_same(self, query: NamedQuery, plan: Plan) -> None:
        """Refuse a query that was planned before one of its streams was altered."""
        if columns_read(self._lifecycle.plan_again(query)[0]) != columns_read(plan):
            raise InputError(
                f"a stream that {query.name} reads was altered meanwhile", hint="try again"
            )

    def _choose_engine(
        self, planned: Planned, limits: QueryLimits, requested: RequestedBuckets
    ) -> tuple[Planned, EnginePlan | None]:
        """The plan in the buckets of its engine; if that is the shared one, also for that."""
        if self._lifecycle.hosting is None or limits.engine is EngineChoice.OWN:
            require_no_shedding(limits, "the query was given an engine of its own")
            return planned, None
        if not requested.is_nothing and limits.engine is EngineChoice.SHARED:
            raise InputError(
                "a query has one bucket in the shared engine",
                hint=f"leave out {'spread' if requested.is_spread else 'buckets'}, "
                "or write engine = 'own'",
            )
        if not requested.is_nothing:
            require_no_shedding(limits, "a query of several buckets has an engine of its own")
            return planned, None
        narrow = in_buckets(planned[0], 1), planned[1]
        plan = self._lifecycle.plan_for_engine(narrow, limits)
        if not isinstance(plan, str):
            return narrow, plan
        require_no_shedding(limits, plan)
        if limits.engine is EngineChoice.SHARED:
            raise InputError(
                "this query cannot run in the shared engine", detail=plan, hint="leave out engine"
            )
        return planned, None

    def _free_reader(self, name: str) -> str:
        """The reader name of a new query in logs: its own name, unless that is taken there."""
        known = {one.reader.lower() for one in self._home.catalog.queries()}
        return name if name.lower() not in known else f"{name}+{uuid4().hex[:8]}"

    def _planned(self, reader: str, statement: Statement, buckets: int | None = None) -> Planned:
        """The plan of a query that runs on."""
        planned = self._lifecycle.plan(reader, statement, buckets)
        if reads_tables_alone(planned[0]):
            raise NoStreamError(
                "this query reads no stream, so there is nothing to continue",
                hint="run it as it is: SELECT …",
            )
        return planned

    def _limits(self, kind: str, change: LimitChange | None) -> QueryLimits:
        """The limits of a new query."""
        usual = usual_for(kind, self._usual)
        return usual if change is None else change(usual)
