"""How named queries are doing: snapshots for the server, the console and SHOW QUERIES."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from nilometer.model.time import format_instant
from nilometer.operators.metrics import StreamMetrics


class QueryPhase(StrEnum):
    """Where a named query is."""

    RUNNING = "running"
    STALLED = "stalled"
    """It runs, but does not get on: nothing comes, or what came waits for something."""
    RESTARTING = "restarting"
    """It has failed; another attempt follows, later after every failure."""
    WAITING = "to be resumed"
    """It ran when the database was closed, and has not been started again yet."""
    STOPPED = "stopped"
    """Somebody stopped it."""
    FAILED = "failed"
    """It has failed in a way that another attempt would not cure, such as a limit."""


class StallReason(StrEnum):
    """Why a query does not get on."""

    NO_INPUT = "no input"
    """Nothing that it reads arrives."""
    HELD = "held"
    """Something arrives, but the watermark waits for a stream, or a sensor of one."""
    ENGINE = "engine"
    """Rows are there, and nobody computes them."""


@dataclass(frozen=True)
class Stall:
    """Who keeps a query from getting on."""

    reason: StallReason
    stream: str
    """The stream or query that it reads; several, where nothing comes of any."""
    sensor: str | None
    since: int | None
    """Microseconds since 1970; None: that is not known."""
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
            return f"rows of {self.stream} have not been computed{since}{more}"
        if self.reason is StallReason.NO_INPUT:
            return f"nothing has come of {self.stream}{since}{more}"
        who = self.stream
        if self.sensor is not None and self.sensor != self.stream:
            who = f"the sensor {self.sensor} of {self.stream}"
        silent = f", silent{since}" if self.detail is None else f"{since}{more}"
        return f"the watermark waits for {who}{silent}"


class OnError(StrEnum):
    """What becomes of a row of which a query cannot compute something."""

    SKIP = "skip"
    """The query goes on without it; it becomes a dead letter."""
    STOP = "stop"
    """The query is stopped."""


class EngineChoice(StrEnum):
    """Where a query runs."""

    SHARED = "shared"
    """Beside others, in the engine of the database."""
    OWN = "own"
    """In a streaming query of Spark that is its own."""


MOVED: Final = "moved"
"""Where a query is that was moved to an engine of its own, since it kept others waiting."""


@dataclass(frozen=True)
class QueryLimits:
    """What one query may do before it, and it alone, is stopped; None: no limit."""

    results: int | None = None
    """Bytes of its result log."""
    state: int | None = None
    """Bytes of its state."""
    history: int | None = None
    """For how long its results are kept (microseconds); None: for ever."""
    on_error: OnError | None = None
    """What becomes of a row of which it cannot compute something; None: a dead letter."""
    engine: EngineChoice | None = None
    """Where it is to run; None: beside others if it can."""


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
    """When its present run began."""
    error: str | None
    """What its last failure said, until it runs well again or is started by hand."""
    failures: int
    """How often in a row it has failed."""
    next_try: int | None
    is_temporary: bool
    """Whether it goes when nobody follows it, and with a restart."""
    limits: QueryLimits
    result_rows: int
    result_bytes: int
    state_bytes: int | None
    watermark: int | None
    """Before which instant its results are complete."""
    dead_letters: int = 0
    """Rows left out so far, because something of them could not be computed."""
    engine: str = EngineChoice.OWN
    """Where it runs: "shared", "own", or "moved" if it was moved there since others had to wait."""
    lag: int | None = None
    """How far its watermark was behind the clock when this was asked (microseconds)."""
    rows_behind: int | None = None
    """How many rows that are there it has not read; None: that is not known."""
    stalled: Stall | None = None
    """Why it does not get on, if it runs and does not."""


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
