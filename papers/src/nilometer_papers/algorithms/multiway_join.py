"""When Golab's joins over time windows are evaluated, and when old tuples expire."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.sliding_window import SlidingWindow, expire
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class MultiwayJoin(JoinAlgorithm):
    """A join of one window per stream; tuples must arrive in one order of time (Golab section 1.1).

    Among equal times the tuples of the first stream come first, and are the older ones.
    Old tuples expire at each arrival, or lazily, at intervals. New tuples are joined as they arrive
    or, in a lazy join, wait for the clean-up and are joined just before it.
    """

    def __init__(
        self,
        task: JoinTask,
        windows: Sequence[SlidingWindow],
        every: int | None,
        lazy: bool,
    ) -> None:
        super().__init__(task)
        assert task.stream_windows is not None
        assert not lazy or every, "a lazy join needs an interval"
        self.windows = windows
        self._lengths = task.stream_windows
        self._every = every
        """The interval tau."""
        self._lazy = lazy
        self._new: list[list[StreamTuple]] = [[] for _ in windows]
        """The tuples that arrived since the join was last evaluated."""
        self._interval = EARLIEST
        """The number of the last interval whose end has passed."""

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        results = self._pass_to(arrival.time)
        self.windows[arrival.stream].insert(arrival)
        if self._lazy:
            self._new[arrival.stream].append(arrival)
            return results
        joined = self._join(arrival.stream, [arrival])
        self.counters.results += len(joined)
        return joined

    def reach(self, stream: int, time: int) -> list[Result]:
        return self._evaluate()

    def save(self) -> Saved:
        tables = {str(i): singles(window) for i, window in enumerate(self.windows)}
        tables |= {f"new {i}": singles(new) for i, new in enumerate(self._new)}
        return Saved(tables, {"interval": [self._interval]})

    def load(self, saved: Saved) -> None:
        for i, window in enumerate(self.windows):
            for (one,) in saved.tables[str(i)]:
                window.insert(one)
            self._new[i] = [one for (one,) in saved.tables[f"new {i}"]]
        (self._interval,) = saved.numbers["interval"]

    @abstractmethod
    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        """The results of new tuples of one stream with older tuples of the other windows."""

    def _pass_to(self, time: int) -> list[Result]:
        """Do what is due before the tuples of a time arrive."""
        if self._every is None:
            self._expire(time)
            return []
        interval = (time - 1) // self._every
        if interval <= self._interval:
            return []
        self._interval = interval
        results = self._evaluate()
        self._expire(interval * self._every)
        return results

    def _evaluate(self) -> list[Result]:
        """Join all waiting tuples, those of the first stream first."""
        results: list[Result] = []
        for origin, new in enumerate(self._new):
            if new:
                results += self._join(origin, new)
                self._new[origin] = []
        self.counters.results += len(results)
        return results

    def _expire(self, now: int) -> None:
        for window, length in zip(self.windows, self._lengths, strict=True):
            expire(window, now - length, self.counters)


def default_interval(task: JoinTask) -> int:
    """The default interval tau: a tenth of the shortest window."""
    assert task.stream_windows is not None
    return max(1, min(task.stream_windows) // 10)
