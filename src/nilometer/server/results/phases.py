"""The states of queries for their followers: read at most once a second for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from nilometer.database.query_status import QueryStatus

_GOOD_FOR: Final = 1.0
_MOST: Final = 50


class Phases:
    """The result of `query(name)`, at most a second old."""

    def __init__(
        self,
        query: Callable[[str], Awaitable[QueryStatus]],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._query = query
        self._clock = clock
        self._asked: dict[str, tuple[float, asyncio.Future[QueryStatus]]] = {}

    async def of(self, name: str) -> QueryStatus:
        """The state of a query; raises what `query` raises."""
        now = self._clock()
        asked, answer = self._asked.get(name, (float("-inf"), None))
        if answer is None or now - asked >= _GOOD_FOR:
            if len(self._asked) >= _MOST:  # dropped queries must not be kept forever
                self._asked = {
                    one: entry for one, entry in self._asked.items() if now - entry[0] < _GOOD_FOR
                }
            answer = asyncio.ensure_future(self._query(name))
            self._asked[name] = now, answer
        return await asyncio.shield(answer)
