"""Why a query is stalled: no input arrives, something holds its watermark, or it is not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from nilometer.database.query_status import QueryPhase, QueryStatus, Stall, StallReason
from nilometer.sensors.manager.status import StreamStatus

ENGINE_PATIENCE: Final = 60_000_000
"""How long rows may wait unread before a query counts as stalled."""
_EMPTY_PATIENCE: Final = 60_000_000
"""How long a stream may be without sensors."""
_UP: Final = (QueryPhase.RUNNING, QueryPhase.STALLED)


@dataclass(frozen=True)
class QueryInput:
    """The current state of a stream or a query that a query reads."""

    name: str
    rows: int = 0
    """How many rows its log has ever had."""
    stream: StreamStatus | None = None
    query: QueryStatus | None = None


@dataclass
class Progress:
    """How far a query has read, and since when rows wait unread."""

    inputs: tuple[str, ...] = ()
    """The streams and queries that it reads."""
    read: dict[str, int] = field(default_factory=dict)
    """Up to which row it has read each of them, as far as known."""
    waiting_since: int | None = None
    """Since when rows wait while it reads nothing; None: none wait, or it reads."""
    is_reported: bool = False
    """Whether the stall was logged."""
    readers: tuple[tuple[str, str], ...] = ()
    """Of a query with an engine of its own: what it reads, each with its reader name in that
    log."""
    _before: tuple[dict[str, int], int | None] = field(default_factory=lambda: ({}, None))

    def behind(self, inputs: Sequence[QueryInput]) -> int | None:
        """How many rows it has not read; None: unknown."""
        if not self.read:
            return None
        return sum(max(0, one.rows - self.read.get(one.name, one.rows)) for one in inputs)

    def look(self, inputs: Sequence[QueryInput], began: int | None, now: int) -> None:
        """Check whether it reads the rows that wait; called at intervals.

        `began`: when its last micro-batch, or the query itself, started.
        """
        behind = self.behind(inputs)
        if behind is None:
            waits = any(_came_after(one.stream, began) for one in inputs)
        else:
            waits = behind > 0
        before, self._before = self._before, (dict(self.read), began)
        if not waits or before != self._before:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = now


def find_stall(
    inputs: Sequence[QueryInput], waiting_since: int | None, started: int | None, now: int
) -> Stall | None:
    """Why a running query is stalled; None: it makes progress."""
    if waiting_since is not None and now - waiting_since > ENGINE_PATIENCE:
        names = ", ".join(one.name for one in inputs)
        return Stall(StallReason.ENGINE, names, None, waiting_since)
    quiet = [stall for one in inputs if (stall := _quiet(one, started, now)) is not None]
    if quiet and len(quiet) == len(inputs):
        since = max((one.since for one in quiet if one.since is not None), default=None)
        names = ", ".join(dict.fromkeys(one.stream for one in quiet))
        sensor = quiet[0].sensor if len(quiet) == 1 else None
        detail = quiet[0].detail if len(quiet) == 1 else None
        return Stall(StallReason.NO_INPUT, names, sensor, since, detail)
    held = [stall for one in inputs if (stall := _holds(one)) is not None]
    return min(held, key=lambda one: one.since or 0, default=None)


def _quiet(one: QueryInput, started: int | None, now: int) -> Stall | None:
    """The stall if nothing arrives from an input."""
    if one.query is not None:
        return _of_query(one.query, StallReason.NO_INPUT)
    stream = one.stream
    if stream is None:
        return None
    if stream.silent_since is not None:
        sensor = stream.held_by if stream.sensors == 1 else None
        return Stall(StallReason.NO_INPUT, stream.name, sensor, stream.silent_since)
    if stream.full:
        detail = f"its log is full: {stream.error}"
        return Stall(StallReason.NO_INPUT, stream.name, None, stream.last_arrival, detail)
    if not stream.sensors and started is not None and now - started > _EMPTY_PATIENCE:
        return Stall(StallReason.NO_INPUT, stream.name, None, started, "it has no sensors")
    return None


def _holds(one: QueryInput) -> Stall | None:
    """The stall if an input holds back the watermark of its readers."""
    if one.query is not None:
        return _of_query(one.query, StallReason.HELD)
    stream = one.stream
    if stream is None or stream.held_since is None:
        return None
    return Stall(StallReason.HELD, stream.name, stream.held_by, stream.held_since)


def _of_query(query: QueryStatus, reason: StallReason) -> Stall | None:
    """The stall that a query passes on to the readers of its results."""
    if query.phase not in _UP:
        return Stall(reason, query.name, None, None, f"the query is {query.phase.value}")
    cause = query.stalled
    if cause is None:
        return None
    if reason is StallReason.NO_INPUT and cause.reason is StallReason.HELD:
        return None  # rows still arrive
    if reason is StallReason.HELD and _goes_on(query, cause):
        return None
    return Stall(reason, query.name, None, cause.since, cause.cause)


def _goes_on(query: QueryStatus, cause: Stall) -> bool:
    """Whether the watermark of a query advances without input, as with arrival times."""
    if cause.since is None or query.watermark is None:
        return False
    return query.watermark - cause.since > _EMPTY_PATIENCE


def _came_after(stream: StreamStatus | None, began: int | None) -> bool:
    arrived = None if stream is None else stream.last_arrival
    return arrived is not None and began is not None and arrived > began
