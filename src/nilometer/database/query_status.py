"""The status of named queries: snapshots for the server, the console and SHOW QUERIES."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from nilometer.database.spread import Spread
from nilometer.model.time import format_instant
from nilometer.operators.metrics import StreamMetrics
from nilometer.sql.plan.parting import Parting


class QueryPhase(StrEnum):
    """The phase of a named query."""

    RUNNING = "running"
    STALLED = "stalled"
    """It runs but makes no progress: no input arrives, or rows wait for something."""
    RESTARTING = "restarting"
    """It has failed and will be retried, after every failure with a longer delay."""
    WAITING = "to be resumed"
    """It was running when the database was closed, and has not been restarted yet."""
    STOPPED = "stopped"
    """It was stopped on request."""
    FAILED = "failed"
    """It has failed in a way that a retry would not cure, such as by a limit."""


class StallReason(StrEnum):
    """Why a query is stalled."""

    NO_INPUT = "no input"
    """Nothing that it reads arrives."""
    HELD = "held"
    """Rows arrive, but the watermark waits for a stream, or a sensor of one."""
    ENGINE = "engine"
    """Rows wait, but nothing processes them."""


@dataclass(frozen=True)
class Stall:
    """What stalls a query."""

    reason: StallReason
    stream: str
    """The stream or query that it reads; several if nothing arrives from any of them."""
    sensor: str | None
    since: int | None
    """Microseconds since 1970; None: unknown."""
    detail: str | None = None

    @property
    def cause(self) -> str:
        """In words.

        >>> Stall(StallReason.HELD, "Rooms", "roof", 0).cause
        'the watermark waits for the sensor roof of Rooms, silent since 1970-01-01 00:00:00 UTC'
        """
        since = "" if self.since is None else f" since {format_instant(self.since)[:19]} UTC"
        more = "" if self.detail is None else f": {self.detail}"
        if self.reason is StallReason.ENGINE:
            return f"rows of {self.stream} have not been processed{since}{more}"
        if self.reason is StallReason.NO_INPUT:
            return f"nothing has arrived from {self.stream}{since}{more}"
        who = self.stream
        if self.sensor is not None and self.sensor != self.stream:
            who = f"the sensor {self.sensor} of {self.stream}"
        silent = f", silent{since}" if self.detail is None else f"{since}{more}"
        return f"the watermark waits for {who}{silent}"


class OnError(StrEnum):
    """What happens to a row that a query cannot compute."""

    SKIP = "skip"
    """The row becomes a dead letter, and the query continues."""
    STOP = "stop"
    """The query is stopped."""


class EngineChoice(StrEnum):
    """Where a query runs."""

    SHARED = "shared"
    """Beside others, in the engine of the database."""
    OWN = "own"
    """In a Spark streaming query of its own."""


MOVED: Final = "moved"
"""A query that was moved to an engine of its own because it kept others waiting."""

_MOST_NAMED: Final = 8
"""How many queries are named that share state with one."""


@dataclass(frozen=True)
class QueryLimits:
    """The limits beyond which one query, and only that one, is stopped; None: no limit."""

    results: int | None = None
    """Bytes of its result log."""
    state: int | None = None
    """Bytes of its state."""
    history: int | None = None
    """How long its results are kept (microseconds); None: forever."""
    on_error: OnError | None = None
    """What happens to a row that it cannot compute; None: it becomes a dead letter."""
    engine: EngineChoice | None = None
    """Where it should run; None: in the shared engine if it can."""
    shed: int | None = None
    """When more rows of a stream wait than this, only some of them are read; None: always all."""
    shed_by: str | None = None
    """What a row is worth then, as an expression; None: all rows are worth the same."""


@dataclass(frozen=True)
class QueryStatus:
    """One named query; instants are microseconds since 1970."""

    name: str
    text: str
    emits: str
    """"append" or "changelog"."""
    phase: QueryPhase
    created: int
    started: int | None
    """When its current run started."""
    error: str | None
    """The message of its last failure, until it runs well again or is started manually."""
    failures: int
    """How many times in a row it has failed."""
    next_try: int | None
    is_temporary: bool
    """Whether it is dropped when nobody follows it, and at a restart."""
    limits: QueryLimits
    result_rows: int
    result_bytes: int
    state_bytes: int | None
    watermark: int | None
    """The time before which its results are complete."""
    dead_letters: int = 0
    """Rows that became dead letters so far, as they could not be computed."""
    engine: str = EngineChoice.OWN
    """Where it runs: "shared", "own", or "moved" if it was moved because it kept others waiting."""
    shares_with: tuple[str, ...] = ()
    """The queries with which it shares state."""
    lag: int | None = None
    """How far its watermark was behind the clock at this moment (microseconds)."""
    rows_behind: int | None = None
    """How many stored rows it has not read yet; None: unknown."""
    stalled: Stall | None = None
    """Why it is stalled, if it is."""
    buckets: int = 1
    """How many parts its work is split into: at most one core works on each."""
    spreads: tuple[Spread, ...] = ()
    """How the rows of its stages are spread over buckets, those with the fullest bucket first."""
    parting: Parting | None = None
    """How the rows of a key of its join are spread, if anything was said about it;"""
    spreads_by_itself: bool = False
    """whether the database spreads them further as it measures hot keys; and"""
    remedy: str | None = None
    """what would help against the bottleneck, in words, if it is known."""

    @property
    def spread_text(self) -> str | None:
        """How the rows of a key are spread, in words."""
        if self.parting is None:
            return None
        one, parts = self.parting.stream, self.parting.parts
        is_spread = f"rows of {one} with the same key are in {parts} buckets"
        text = "no key is spread" if parts == 1 else is_spread
        return f"automatic: {text}" if self.spreads_by_itself else text

    @property
    def shares_text(self) -> str | None:
        """The queries with which it shares state, in words."""
        if not self.shares_with:
            return None
        shown, more = self.shares_with[:_MOST_NAMED], len(self.shares_with) - _MOST_NAMED
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

    @property
    def bottleneck_text(self) -> str | None:
        """The bottleneck, and what helps, in words."""
        if self.bottleneck is None:
            return None
        cause = self.bottleneck.cause
        return cause if self.remedy is None else f"{cause}: {self.remedy}"

    @property
    def bottleneck(self) -> Spread | None:
        """The stage in which one bucket has much more than its share of much work."""
        return next((one for one in self.spreads if one.is_bottleneck), None)


@dataclass(frozen=True)
class HealthSample:
    """A query after one micro-batch."""

    time: int
    input_rows_per_second: float
    output_rows_per_second: float
    state_bytes: int
    watermark_lag: int | None
    """How far its watermark is behind the clock (microseconds)."""
    late_rows: int
    """Rows dropped so far because they were late."""
    batch_millis: float
    budget_millis: float
    """How long a micro-batch may take before the next one is due."""
    streams: Mapping[str, StreamMetrics] = field(default_factory=dict)
    shed_rows: int = 0
    """Rows not read so far, as the query was too far behind."""
