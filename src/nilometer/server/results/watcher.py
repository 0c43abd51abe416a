"""Watches one log for all its followers: one read of its head serves them all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from nilometer.errors import NilometerError
from nilometer.log.seen import Seen

SOONEST: Final = 0.05
LATEST: Final = 0.2
"""Seconds between two looks: the first while the log grows, the second after a long silence."""
_SLOWER: Final = 1.3


class LogWatcher:
    """Wakes those who wait for a log to grow; looks only while somebody waits."""

    def __init__(self, look: Callable[[], Awaitable[Seen]]) -> None:
        self._look = look
        self._latest: Seen | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of waiters."""
        return len(self._waiting)

    async def beyond(self, seen: Seen) -> Seen:
        """Wait until the log has grown beyond `seen`; raises what reading it raises."""
        while self._latest is None or self._latest <= seen:
            woken = asyncio.get_running_loop().create_future()
            self._waiting.add(woken)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._watch())
            try:
                await woken
            finally:
                self._waiting.discard(woken)
        return self._latest

    async def _watch(self) -> None:
        pause = SOONEST
        while self._waiting:
            try:
                seen = await self._look()
            except NilometerError as error:
                self._wake(error)
                return
            if self._latest is None or seen > self._latest:
                self._latest, pause = seen, SOONEST
                self._wake(None)
            else:
                pause = min(pause * _SLOWER, LATEST)
            await asyncio.sleep(pause)

    def _wake(self, error: NilometerError | None) -> None:
        for woken in self._waiting:
            if woken.done():
                continue
            if error is None:
                woken.set_result(None)
            else:
                woken.set_exception(error)
