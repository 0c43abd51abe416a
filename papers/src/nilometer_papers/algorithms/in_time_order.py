"""A merge before algorithms that need the tuples of all streams in one order of time."""

from __future__ import annotations

from collections import deque

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class InTimeOrder(JoinAlgorithm):
    """Holds tuples back until no stream can deliver an earlier one.

    Golab's algorithms assume that the system assigns timestamps as tuples arrive, so that no stream
    is ever behind another; this ensures it. Among equal times the first stream comes first.
    """

    def __init__(self, inner: JoinAlgorithm) -> None:
        super().__init__(inner.task)
        self.inner = inner
        self.counters = inner.counters
        self._waiting: list[deque[StreamTuple]] = [deque() for _ in range(self.task.streams)]
        self._reached = [EARLIEST] * self.task.streams
        """The time before which a stream delivers nothing more."""

    def process(self, arrival: StreamTuple) -> list[Result]:
        self._waiting[arrival.stream].append(arrival)
        return self._release(arrival.stream, arrival.time)

    def reach(self, stream: int, time: int) -> list[Result]:
        results = self._release(stream, time)
        frontier = min(self._reached)
        for i in range(self.task.streams):
            results += self.inner.reach(i, frontier)
        return results

    def save(self) -> Saved:
        saved = self.inner.save()
        for i, waiting in enumerate(self._waiting):
            saved.tables[f"waiting {i}"] = singles(waiting)
        saved.numbers["reached"] = list(self._reached)
        return saved

    def load(self, saved: Saved) -> None:
        self.inner.load(saved)
        for i, waiting in enumerate(self._waiting):
            waiting.extend(one for (one,) in saved.tables[f"waiting {i}"])
        self._reached = list(saved.numbers["reached"])

    def _release(self, stream: int, time: int) -> list[Result]:
        """Pass on tuples that no stream can precede any more.

        Arrivals alone do not release everything that waits: a lazy algorithm has its own times.
        """
        self._reached[stream] = max(self._reached[stream], time)
        results: list[Result] = []
        while (first := self._first()) is not None:
            results += self.inner.process(self._waiting[first].popleft())
        return results

    def _first(self) -> int | None:
        """The stream whose tuple comes next, if known."""
        _, first = min(
            (waiting[0].time if waiting else self._reached[i], i)
            for i, waiting in enumerate(self._waiting)
        )
        return first if self._waiting[first] else None
