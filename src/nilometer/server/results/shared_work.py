"""Work that is done once for all who need its outcome, which is kept for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

_Outcome = TypeVar("_Outcome")


class SharedWork:
    """The newest outcomes by key, limited in total size."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}
        self.size = 0
        self.done = 0
        """How often work was actually done."""

    async def get(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[_Outcome]],
        size: Callable[[_Outcome], int],
    ) -> _Outcome:
        """The outcome for a key, which depends on nothing else."""
        if key in self._kept:
            self._kept.move_to_end(key)
            outcome: _Outcome = self._kept[key][0]
            return outcome
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.ensure_future(self._make(key, make, size))
            task.add_done_callback(_look_at)
            self._under_way[key] = task
        # A waiter that is cancelled must not cancel what others wait for.
        made: _Outcome = await asyncio.shield(task)
        return made

    async def _make(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[_Outcome]],
        size: Callable[[_Outcome], int],
    ) -> _Outcome:
        try:
            made = await make()
        finally:
            del self._under_way[key]
        self.done += 1
        self._kept[key] = made, size(made)
        self.size += size(made)
        while self.size > self._max_bytes:
            self.size -= self._kept.popitem(last=False)[1][1]
        return made


def _look_at(task: asyncio.Task[Any]) -> None:
    """Consume a failure that nobody awaits any more."""
    if not task.cancelled():
        task.exception()
