"""The events that followers of a query's results receive, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeAlias

from nilometer.database.query_status import QueryStatus
from nilometer.errors import LogGapError, NilometerError, NotFoundError
from nilometer.server.results.chunk import Chunk
from nilometer.server.results.offset import Offset
from nilometer.server.results.query_results import QueryResults

HEARTBEAT: Final = 10.0
"""Something is sent at least this often (seconds), so that both sides know the other is alive."""
_LOOK: Final = 1.0
"""How often the state of the query is read."""


@dataclass(frozen=True)
class Heartbeat:
    """Nothing has happened."""

    offset: Offset


@dataclass(frozen=True)
class Gap:
    """Rows were deleted before they were sent; continues at the oldest one that is kept."""

    error: LogGapError
    oldest: Offset


@dataclass(frozen=True)
class BaseComes:
    """The changes after an offset were deleted: what follows is the base that replaces them.

    A client that adds up changes must discard all earlier ones.
    """

    error: LogGapError
    oldest: Offset
    rows: int
    instant: int
    """The instant for which the base is the answer (microseconds)."""


@dataclass(frozen=True)
class State:
    """The query runs, was stopped, has failed, or will be retried."""

    phase: str
    error: str | None
    offset: Offset


@dataclass(frozen=True)
class End:
    """Nothing more will follow."""

    error: NilometerError


Event: TypeAlias = Chunk | Heartbeat | Gap | BaseComes | State | End
StatusOf: TypeAlias = Callable[[], Awaitable[QueryStatus]]


async def tell(
    results: QueryResults,
    offset: Offset | None,
    status: StatusOf,
    *,
    max_rows: int,
    heartbeat: float = HEARTBEAT,
    clock: Callable[[], float] = monotonic,
    ending: Callable[[], NilometerError | None] = lambda: None,
) -> AsyncGenerator[Event, None]:
    """Everything that a follower receives, starting at an offset (None: now).

    Nothing is read before it is requested; the first chunk is returned at once. It ends with the
    query, or when `ending` returns a reason.
    """
    following = _Following(results, offset, max_rows)
    phase: str | None = "running"
    try:
        last, looked = clock(), float("-inf")
        while True:
            event: Event | None = await following.next(min(_LOOK, heartbeat))
            if event is None and following.is_begun and clock() - last >= heartbeat:
                event = Heartbeat(following.place)
            reason = ending()
            if reason is not None:
                yield End(reason)
                return
            if event is not None:
                last = clock()
                yield event
            if isinstance(event, End):
                return
            if following.is_begun and clock() - looked >= _LOOK:
                looked = clock()
                try:
                    latest = await status()
                except NotFoundError as error:
                    yield End(error)
                    return
                if latest.phase != phase:
                    phase, last = latest.phase, clock()
                    yield State(latest.phase.value, _why(latest), following.place)
    finally:
        await following.close()


def _why(status: QueryStatus) -> str | None:
    return status.error if status.stalled is None else status.stalled.cause


class _Following:
    """The next event of the log, awaited for a while at a time."""

    def __init__(self, results: QueryResults, offset: Offset | None, max_rows: int) -> None:
        self._results = results
        self._max_rows = max_rows
        self._chunks = results.follow(offset, max_rows=max_rows)
        self._waiting: asyncio.Future[Chunk] | None = None
        self._place = offset

    @property
    def is_begun(self) -> bool:
        return self._place is not None

    @property
    def place(self) -> Offset:
        """The offset after everything sent so far."""
        assert self._place is not None
        return self._place

    async def next(self, within: float) -> Chunk | Gap | BaseComes | End | None:
        """The next event; None if there is none within this many seconds."""
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(anext(self._chunks))
        done, _ = await asyncio.wait({self._waiting}, timeout=within)
        if not done:
            return None
        waiting, self._waiting = self._waiting, None
        try:
            chunk = waiting.result()
        except LogGapError as error:
            base = await self._results.base()
            self._place = await self._results.oldest() if base is None else base[0]
            self._chunks = self._results.follow(self._place, max_rows=self._max_rows)
            return Gap(error, self._place) if base is None else BaseComes(error, *base)
        except NilometerError as error:
            return End(error)
        self._place = chunk.next
        return chunk

    async def close(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait({self._waiting})
        await self._chunks.aclose()
