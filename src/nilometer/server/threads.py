"""The threads in which a server works, so that its event loop only answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from nilometer.errors import ClosedError
from nilometer.server.limits import Room
from nilometer.spark.failures import told_in_words

_STATEMENTS: Final = 8
_PLANS: Final = 4
_LOOKS: Final = 4
_Result = TypeVar("_Result")


class Threads:
    """Threads for statements, for plans and for looks: none of them waits for the others."""

    def __init__(self, most_statements: int) -> None:
        self._room = Room(most_statements, "statements run or wait")
        self._statements = ThreadPoolExecutor(_STATEMENTS, "statement")
        self._plans = ThreadPoolExecutor(_PLANS, "plan")
        self._looks = ThreadPoolExecutor(_LOOKS, "look")

    @property
    def statements_taken(self) -> int:
        """How many statements run or wait."""
        return self._room.taken

    async def change(self, work: Callable[[], _Result]) -> _Result:
        """Run a statement, or wait for those before it; LimitError if too many wait."""
        with self._room.one():
            return await _run_in(self._statements, work)

    async def plan(self, work: Callable[[], _Result]) -> _Result:
        """Do what needs the compiler, but runs nothing."""
        return await _run_in(self._plans, work)

    async def look(self, work: Callable[[], _Result]) -> _Result:
        """Do what only looks at the catalog, at logs or at what is in memory, without Spark."""
        return await _run_in(self._looks, work)

    def close(self) -> None:
        """Take no more work; what runs is not waited for."""
        for pool in (self._statements, self._plans, self._looks):
            pool.shutdown(wait=False, cancel_futures=True)


async def _run_in(threads: ThreadPoolExecutor, work: Callable[[], _Result]) -> _Result:
    def told() -> _Result:
        with told_in_words():
            return work()

    try:
        running = asyncio.get_running_loop().run_in_executor(threads, told)
    except RuntimeError:
        raise ClosedError("the server is stopping") from None
    return await running
