"""The threads of a server, so that its event loop only answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Final, TypeVar

from nilometer.errors import ClosedError, LimitError
from nilometer.server.fair_threads import FairThreads
from nilometer.server.limits import Room
from nilometer.spark.failures import explained_failures
from nilometer.spark.time_limit import took_too_long

_STATEMENTS: Final = 8
_SELECTS: Final = 4
_PLANS: Final = 4
_LOOKS: Final = 4
_GRACE_SECONDS: Final = 2.0
"""How long work that has taken too long may still report so itself."""
_Result = TypeVar("_Result")


class Threads:
    """Threads for statements, SELECTs, plans and looks: none of them waits for the others.

    Within each kind, askers take turns.
    """

    def __init__(self, max_statements: int, within: float, max_waiting: int) -> None:
        self._within = within
        self._room = Room(max_statements, "statements run or wait")
        self._statements = FairThreads(_STATEMENTS, "statement", max_waiting)
        self._select_room = Room(max_statements, "statements run or wait")
        self._selects = FairThreads(_SELECTS, "select", max_waiting)
        self._plans = FairThreads(_PLANS, "plan", max_waiting)
        self._looks = FairThreads(_LOOKS, "look", max_waiting)

    @property
    def statements_taken(self) -> int:
        """How many statements are running or waiting."""
        return self._room.taken + self._select_room.taken

    async def change(self, work: Callable[[], _Result]) -> _Result:
        """Run a statement after those before it; LimitError if too many wait."""
        with self._room.one():
            return await asyncio.wrap_future(_submit(self._statements, work))

    async def select(self, work: Callable[[], _Result]) -> _Result:
        """Answer a query that must end itself in time; the asker gets an answer in any case.

        One that does not end keeps its thread, and its place among those that are counted.
        """
        with ExitStack() as stack:
            stack.enter_context(self._select_room.one())
            running = _submit(self._selects, work)
            running.add_done_callback(_calling(stack.pop_all().close))
        return await self._in_time(running)

    async def plan(self, work: Callable[[], _Result]) -> _Result:
        """Run work that needs the compiler, but runs nothing."""
        return await self._in_time(_submit(self._plans, work))

    async def look(self, work: Callable[[], _Result]) -> _Result:
        """Run work that only reads the catalog, logs or memory, without Spark."""
        return await asyncio.wrap_future(_submit(self._looks, work))

    def close(self) -> None:
        """Accept no more work, without waiting for what is running."""
        for pool in (self._statements, self._selects, self._plans, self._looks):
            pool.close()

    async def _in_time(self, running: Future[_Result]) -> _Result:
        try:
            async with asyncio.timeout(self._within + _GRACE_SECONDS):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            if running.cancelled():
                raise LimitError(
                    "other users' statements are taking up all the time",
                    hint="try again in a few seconds",
                ) from None
            raise took_too_long(self._within) from None


def _submit(threads: FairThreads, work: Callable[[], _Result]) -> Future[_Result]:
    def work_in_words() -> _Result:
        with explained_failures():
            return work()

    try:
        return threads.submit(work_in_words)
    except RuntimeError:
        raise ClosedError("the server is stopping") from None


def _calling(done: Callable[[], None]) -> Callable[[object], None]:
    return lambda _: done()
