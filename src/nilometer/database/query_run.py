"""One named query as it runs here: where it is, what was seen of it, and how it goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql.streaming.query import StreamingQuery

from nilometer.database.back_off import BackOff
from nilometer.database.health import HealthHistory
from nilometer.database.query_status import QueryLimits, QueryPhase
from nilometer.database.stalls import Progress
from nilometer.log.position import Position
from nilometer.spark.engine import HostedQuery

QueryHandle: TypeAlias = StreamingQuery | HostedQuery
"""A query at work: Spark's own, or one of the engine's."""


@dataclass(frozen=True)
class RunState:
    """Where a query is; instants in microseconds."""

    phase: QueryPhase
    started: int | None = None
    error: str | None = None
    failures: int = 0
    next_try: int | None = None
    """When a query that is restarting is tried again; None while that happens."""

    def begun(self, now: int) -> RunState:
        """It runs; failures before count until it has run well for a while."""
        return replace(self, phase=QueryPhase.RUNNING, started=now, next_try=None)

    def failed(self, error: str, now: int, back_off: BackOff, chance: float) -> RunState:
        """It has failed, and will be tried again."""
        failures = self.failures + 1
        later = now + back_off.wait(failures, chance)
        return RunState(QueryPhase.RESTARTING, None, error, failures, later)

    def given_up(self, error: str) -> RunState:
        """It has failed for good."""
        return RunState(QueryPhase.FAILED, None, error, self.failures + 1)

    def is_due(self, now: int) -> bool:
        """Whether it is time to try again."""
        due = self.next_try is not None and self.next_try <= now
        return self.phase is QueryPhase.RESTARTING and due

    def is_well_again(self, now: int, has_worked: bool, back_off: BackOff) -> bool:
        """Whether it has run so well that earlier failures count no more."""
        if not self.failures or self.phase is not QueryPhase.RUNNING or self.started is None:
            return False
        return has_worked and now - self.started >= back_off.good_after


@dataclass
class QueryRun:
    """A query of this process. What changes it holds the lock; anybody may look meanwhile."""

    name: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    state: RunState | None = None
    """None: nothing has been done about it here yet."""
    handle: QueryHandle | None = None
    place: int | None = None
    """Its place among those that run, while it has one: from 0, the lowest that was free."""
    progress: Progress = field(default_factory=Progress)
    health: HealthHistory = field(default_factory=HealthHistory)
    limits: QueryLimits = field(default_factory=QueryLimits)
    """Those with which it was started."""
    look_after: int = 0
    """When to look at it again."""
    replaces: str | None = None
    """The query in whose place it will be once it has caught up, and"""
    ends: Mapping[str, Position] = field(default_factory=dict)
    """where the logs that it reads ended when it began."""
    has_worked: bool = False
    """Whether its present run has finished a micro-batch."""

    @property
    def is_active(self) -> bool:
        """Whether it runs, or will be tried again."""
        return self.state is not None and self.state.phase in (
            QueryPhase.RUNNING,
            QueryPhase.RESTARTING,
        )
