"""COMPUTECOUNTJOIN: nested loops over count-based windows, lazily (Golab section 3.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.compute_join import is_newer
from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

CIRCLE: Final = 1 << 31
"""The circular counters restart after this many tuples: more than a window ever holds."""


class CountNLJ(JoinAlgorithm):
    """Joins tuples with the last rows that each stream had at their time.

    Tuples must arrive in one order of time, among equal times those of the first stream first. A
    tuple waits until its time has passed, because others of that time may replace it in its window;
    and until the interval, if one is given, has ended. By default the order is that of the streams.
    """

    def __init__(self, task: JoinTask, order: Sequence[int] | None = None, every: int = 1) -> None:
        super().__init__(task)
        assert task.rows is not None
        self.windows = [CountedWindow(rows) for rows in task.rows]
        self._new: list[list[StreamTuple]] = [[] for _ in task.rows]
        self._every = every
        self._interval = EARLIEST
        """The number of the last interval whose end has passed."""
        streams, plan = range(task.streams), order or range(task.streams)
        self._orders = [[i, *(j for j in plan if j != i)] for i in streams]
        self._by_stream = [itemgetter(*map(one.index, streams)) for one in self._orders]

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        results: list[Result] = []
        interval = (arrival.time - 1) // self._every
        if interval > self._interval:
            self._interval = interval
            results = self._evaluate(arrival.time)
        self.windows[arrival.stream].insert(arrival)
        self._new[arrival.stream].append(arrival)
        return results

    def reach(self, stream: int, time: int) -> list[Result]:
        return self._evaluate(time)

    def save(self) -> Saved:
        tables = {str(i): singles(window.tuples) for i, window in enumerate(self.windows)}
        tables |= {f"new {i}": singles(new) for i, new in enumerate(self._new)}
        return Saved(tables, {"interval": [self._interval]})

    def load(self, saved: Saved) -> None:
        for i, window in enumerate(self.windows):
            for (one,) in saved.tables[str(i)]:
                window.insert(one)
            self._new[i] = [one for (one,) in saved.tables[f"new {i}"]]
        (self._interval,) = saved.numbers["interval"]

    def _evaluate(self, before: int) -> list[Result]:
        """Join waiting tuples older than a time, then expire those that newer tuples replace."""
        results: list[Result] = []
        for origin, new in enumerate(self._new):
            ready = [one for one in new if one.time < before]
            self._new[origin] = new[len(ready) :]
            for one in ready:
                results += self._compute_count_join(one)
        for window, new in zip(self.windows, self._new, strict=True):
            window.expire(len(new), self.counters)
        self.counters.results += len(results)
        return results

    def _compute_count_join(self, new: StreamTuple) -> list[Result]:
        newest = [window.newest_at(new.time, self.counters) for window in self.windows]
        own = self.windows[new.stream].at(newest[new.stream], new.time)
        results: list[Result] = []
        if new in own and None not in newest:
            self._loop([new], newest, results)
        return results

    def _loop(
        self, partial: list[StreamTuple], newest: list[int | None], results: list[Result]
    ) -> None:
        new = partial[0]
        order = self._orders[new.stream]
        stream = order[len(partial)]
        window = self.windows[stream]
        inside = window.at(newest[stream], new.time - is_newer(stream, new.stream))
        self.counters.visited += len(window.tuples)
        self.counters.time_tests += 2 * len(window.tuples)
        self.counters.value_tests += len(inside)
        matches = self.task.condition.among(partial, inside)
        if len(partial) + 1 == len(order):
            by_stream = self._by_stream[new.stream]
            results += [by_stream((*partial, one)) for one in matches]
            return
        for one in matches:
            self._loop([*partial, one], newest, results)


class CountedWindow:
    """The tuples of one stream with their positions, assigned by a circular counter."""

    def __init__(self, rows: int) -> None:
        self.tuples: deque[StreamTuple] = deque()
        self._positions: deque[int] = deque()
        self._rows = rows
        self._counter = 0

    def insert(self, one: StreamTuple) -> None:
        """Add the newest tuple of the stream."""
        self.tuples.append(one)
        self._positions.append(self._counter)
        self._counter = (self._counter + 1) % CIRCLE

    def newest_at(self, time: int, counters: Counters) -> int | None:
        """The position of the newest tuple at a time; None if there was none."""
        for later, one in enumerate(reversed(self.tuples), 1):
            counters.time_tests += 1
            if one.time <= time:
                return self._positions[-later]
        return None

    def at(self, newest: int | None, last: int) -> list[StreamTuple]:
        """The last rows up to a position, excluding those later than a time."""
        if newest is None:
            return []
        rows = self._rows
        return [
            one
            for position, one in zip(self._positions, self.tuples, strict=True)
            if (newest - position) % CIRCLE < rows and one.time <= last
        ]

    def expire(self, waiting: int, counters: Counters) -> None:
        """Drop all but the last rows; waiting tuples do not replace others yet."""
        for _ in range(len(self.tuples) - waiting - self._rows):
            self.tuples.popleft()
            self._positions.popleft()
            counters.removed += 1
