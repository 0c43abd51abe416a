"""The windows of Golab's joins: linked lists in time order (Golab section 6.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Protocol

from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.stream_tuple import StreamTuple


class SlidingWindow(Protocol):
    """The tuples of one stream that may still join."""

    lists: Sequence[deque[StreamTuple]]
    """All tuples, each list in time order; in windows with several indexes, as often."""

    def __iter__(self) -> Iterator[StreamTuple]:
        """All tuples, each once, in an order in which they can be inserted again."""

    def insert(self, one: StreamTuple) -> None:
        """Add the newest tuple of the stream."""

    def candidates(self, partial: Sequence[StreamTuple]) -> Collection[StreamTuple]:
        """The tuples a for-loop goes through for a combination with at least one tuple."""


class ScannedWindow:
    """A window without an index: one list."""

    def __init__(self) -> None:
        self.tuples: deque[StreamTuple] = deque()
        self.lists: Sequence[deque[StreamTuple]] = (self.tuples,)
        self.insert = self.tuples.append

    def __iter__(self) -> Iterator[StreamTuple]:
        return iter(self.tuples)

    def candidates(self, partial: Sequence[StreamTuple]) -> Collection[StreamTuple]:
        """All tuples."""
        return self.tuples


class HashedWindow:
    """A window in hash buckets, selected by the hash of the key modulo their number.

    >>> window = HashedWindow(5)
    >>> window.insert(StreamTuple(time=0, key=7, stream=0, number=0))
    >>> [len(bucket) for bucket in window.lists]
    [0, 0, 1, 0, 0]
    """

    def __init__(self, buckets: int) -> None:
        self.lists: Sequence[deque[StreamTuple]] = tuple(deque() for _ in range(buckets))

    def __iter__(self) -> Iterator[StreamTuple]:
        return chain.from_iterable(self.lists)

    def insert(self, one: StreamTuple) -> None:
        """Add the newest tuple of the stream to its bucket."""
        self.lists[hash(one.key) % len(self.lists)].append(one)

    def candidates(self, partial: Sequence[StreamTuple]) -> Collection[StreamTuple]:
        """The bucket of the first tuple's key."""
        return self.lists[hash(partial[0].key) % len(self.lists)]


def expire(window: SlidingWindow, oldest: int, counters: Counters) -> None:
    """Drop what is older than a given time: check the head of every list, and advance it."""
    removed = 0
    for tuples in window.lists:
        while tuples and tuples[0].time < oldest:
            tuples.popleft()
            removed += 1
    counters.removed += removed
    counters.time_tests += len(window.lists) + removed
