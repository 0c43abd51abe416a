"""Iterating over the results of a query as they come, over one connection after the other."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from nilometer.client.followed_results import FollowedResults
from nilometer.client.following import FollowState, LostError

if TYPE_CHECKING:
    from nilometer.client.client import Client

_Item = TypeVar("_Item", dict[str, Any], pa.RecordBatch)


class Following(FollowedResults, Iterator[_Item]):
    """The results of a query as they arrive; reconnects by itself and resumes at its offset."""

    def __init__(self, client: Client, state: FollowState, batches: bool) -> None:
        super().__init__(state)
        self._client = client
        self._take = state.batches if batches else state.rows
        self._items: Generator[_Item, None, None] = self._follow()

    def __next__(self) -> _Item:
        return next(self._items)

    def close(self) -> None:
        """Stop following."""
        self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self) -> Generator[Any, None, None]:
        while True:
            try:
                with closing(self._client.listen(self._state)) as connection:
                    for data in connection:
                        yield from self._take(data)
            except LostError as lost:
                time.sleep(self._state.lost(lost.why))
