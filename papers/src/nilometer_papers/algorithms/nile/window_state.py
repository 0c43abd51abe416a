"""Stored tuples, and how expired ones are found (Nile sections 3.1.2 and 3.2.2).

A tuple is valid in the closed period [ts, ts + w]: it has expired once the clock is past ts + w.
Tuples that only negative tuples end are not stored here.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Protocol

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.nile.operator_counters import OperatorCounters
from nilometer_papers.algorithms.nile.plan_tuple import Held

_MIN_TS = attrgetter("min_ts")


class WindowState(Protocol):
    """Stored tuples that expire with time."""

    def __len__(self) -> int: ...

    @property
    def next_end(self) -> int:
        """No stored tuple expires before this instant."""

    def add(self, held: Held) -> None:
        """Store a tuple."""

    def remove(self, held: Held) -> None:
        """Drop a tuple before it expires."""

    def expire(self, clock: int) -> list[tuple[int, Held]]:
        """Remove expired tuples: (the first instant without it, the tuple), in that order."""


def state_for(windows: Sequence[int], counters: OperatorCounters) -> WindowState:
    """The state for tuples of sources with these windows."""
    if len(set(windows)) == 1:
        return OrderedState(windows[0], counters)
    return ScannedState(windows, counters)


class OrderedState:
    """For one window: in the order of minTS, so that only the first tuples are checked."""

    def __init__(self, window: int, counters: OperatorCounters) -> None:
        self._window = window
        self._counters = counters
        self._tuples: list[Held] = []
        self._first = 0
        """How many at the head of the list are deleted; truncated when they are half of it."""

    def __len__(self) -> int:
        return len(self._tuples) - self._first

    @property
    def next_end(self) -> int:
        return self._tuples[self._first].min_ts + self._window + 1 if len(self) else FOREVER

    def add(self, held: Held) -> None:
        tuples = self._tuples
        if held.min_ts == FOREVER:
            return
        if not tuples or tuples[-1].min_ts <= held.min_ts:
            tuples.append(held)
        else:
            insort(tuples, held, lo=self._first, key=_MIN_TS)

    def remove(self, held: Held) -> None:
        if held.min_ts != FOREVER:
            start = bisect_left(self._tuples, held.min_ts, lo=self._first, key=_MIN_TS)
            del self._tuples[self._tuples.index(held, start)]

    def expire(self, clock: int) -> list[tuple[int, Held]]:
        tuples, first, oldest = self._tuples, self._first, clock - self._window
        last = first
        while last < len(tuples) and tuples[last].min_ts < oldest:
            last += 1
        self._counters.comparisons += last - first + (last < len(tuples))
        if last == first:
            return []
        after = self._window + 1
        expired = [(held.min_ts + after, held) for held in tuples[first:last]]
        self._first = last
        if last * 2 > len(tuples):
            del tuples[:last]
            self._first = 0
        return expired


class ScannedState:
    """For several windows: tuples expire in any order, so all are checked, one by one."""

    def __init__(self, windows: Sequence[int], counters: OperatorCounters) -> None:
        self._windows = windows
        self._counters = counters
        self._tuples: list[Held] = []
        self._ends: list[int] = []
        """A heap of expiry times, for the scheduler; some of its tuples may be removed."""

    @property
    def next_end(self) -> int:
        return self._ends[0] if self._ends else FOREVER

    def __len__(self) -> int:
        return len(self._tuples)

    def add(self, held: Held) -> None:
        if held.min_ts != FOREVER:
            self._tuples.append(held)
            heappush(self._ends, self._end(held))

    def remove(self, held: Held) -> None:
        if held.min_ts != FOREVER:
            self._tuples.remove(held)

    def expire(self, clock: int) -> list[tuple[int, Held]]:
        expired: list[Held] = []
        for source, window in enumerate(self._windows):
            oldest = clock - window
            self._counters.comparisons += len(self._tuples)
            too_old = [held for held in self._tuples if held[2][source] < oldest]
            if too_old:
                self._tuples = [held for held in self._tuples if held[2][source] >= oldest]
                expired += too_old
        while self._ends and self._ends[0] <= clock:
            heappop(self._ends)
        return sorted(((self._end(held), held) for held in expired), key=_first)

    def _end(self, held: Held) -> int:
        pairs = zip(held.stamps, self._windows, strict=True)
        return min(stamp + window for stamp, window in pairs) + 1


def _first(pair: tuple[int, Held]) -> int:
    return pair[0]
