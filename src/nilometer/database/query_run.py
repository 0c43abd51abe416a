"""One named query as it runs here: its phase, what was observed, and what comes next."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql.streaming.query import StreamingQuery

from nilometer.database.auto_spread import HotKeyWatch, SpreadJoin
from nilometer.database.back_off import BackOff
from nilometer.database.health import HealthHistory
from nilometer.database.query_status import QueryLimits, QueryPhase
from nilometer.database.stalls import Progress
from nilometer.log.position import Position
from nilometer.spark.hosted_query import HostedQuery

QueryHandle: TypeAlias = StreamingQuery | HostedQuery
"""A running query: Spark's own, or one in the engine."""


@dataclass(frozen=True)
class RunState:
    """The phase of a query; times in microseconds."""

    phase: QueryPhase
    started: int | None = None
    error: str | None = None
    failures: int = 0
    next_try: int | None = None
    """When a restarting query is next retried; None during the retry."""

    def begun(self, now: int) -> RunState:
        """The query runs; earlier failures count until it has run well for a while."""
        return replace(self, phase=QueryPhase.RUNNING, started=now, next_try=None)

    def failed(self, error: str, now: int, back_off: BackOff, chance: float) -> RunState:
        """The query has failed and will be retried."""
        failures = self.failures + 1
        later = now + back_off.wait(failures, chance)
        return RunState(QueryPhase.RESTARTING, None, error, failures, later)

    def given_up(self, error: str) -> RunState:
        """The query has failed for good."""
        return RunState(QueryPhase.FAILED, None, error, self.failures + 1)

    def is_due(self, now: int) -> bool:
        """Whether it is time to retry."""
        due = self.next_try is not None and self.next_try <= now
        return self.phase is QueryPhase.RESTARTING and due

    def is_well_again(self, now: int, has_worked: bool, back_off: BackOff) -> bool:
        """Whether it has run well for long enough that earlier failures no longer count."""
        if not self.failures or self.phase is not QueryPhase.RUNNING or self.started is None:
            return False
        return has_worked and now - self.started >= back_off.good_after


@dataclass
class QueryRun:
    """A query of this process; changing it requires the lock, reading it does not."""

    name: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    state: RunState | None = None
    """None: nothing has been done with it here yet."""
    handle: QueryHandle | None = None
    place: int | None = None
    """Its slot among the running queries, while it has one: the lowest that was free, from 0."""
    progress: Progress = field(default_factory=Progress)
    health: HealthHistory = field(default_factory=HealthHistory)
    limits: QueryLimits = field(default_factory=QueryLimits)
    """The limits with which it was started."""
    look_after: int = 0
    """When to check on it again."""
    replaces: str | None = None
    """The query that it replaces once it has caught up, and"""
    ends: Mapping[str, Position] = field(default_factory=dict)
    """where the logs that it reads ended when it started."""
    has_worked: bool = False
    """Whether its current run has finished a micro-batch."""
    join: SpreadJoin | None = None
    """Its join, if that is or can be spread."""
    hot: HotKeyWatch = field(default_factory=HotKeyWatch)

    @property
    def is_active(self) -> bool:
        """Whether it runs, or will be retried."""
        return self.state is not None and self.state.phase in (
            QueryPhase.RUNNING,
            QueryPhase.RESTARTING,
        )
