"""The iteration of a new tuple over the buffers of all other streams (SSDBM section 3.1)."""

from __future__ import annotations

from nilometer.algorithms.buffers import Buffer, BufferType
from nilometer.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.stream_tuple import Result, StreamTuple
from nilometer.model.time import EARLIEST


class BackwardJoin(JoinAlgorithm):
    """Joins each new tuple at once with the buffers of the other streams, one after the other.

    The period in which partners may lie begins with twice the window around the new tuple and
    shrinks with every member. Visiting a buffer removes the tuples that are more than the window
    older than the newest of all other streams.
    """

    removes_when_visited = True
    """Whether a look at a buffer removes what is old there."""

    def __init__(self, task: JoinTask, kind: BufferType) -> None:
        super().__init__(task)
        assert task.window is not None
        self._window = task.window
        self._streams = task.streams
        self._buffers: list[Buffer[StreamTuple]] = [
            kind(self.counters, task.window) for _ in range(task.streams)
        ]
        self._newest = [EARLIEST] * task.streams
        """The vector of the newest timestamps, stream by stream."""

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        stream = arrival.stream
        self._newest[stream] = arrival.time
        self._buffers[stream].add(arrival, self._oldest(stream))
        if self.removes_when_visited:
            self._buffers[stream].tidy(self._oldest(stream))
        results: list[Result] = []
        self._extend([arrival], arrival.time, arrival.time, results)
        self.counters.results += len(results)
        return results

    def reach(self, stream: int, time: int) -> list[Result]:
        if time > self._newest[stream]:
            self._newest[stream] = time
            if self.removes_when_visited:
                self._sweep()
        return []

    def save(self) -> Saved:
        tables = {str(i): singles(buffer) for i, buffer in enumerate(self._buffers)}
        return Saved(tables, {"newest": list(self._newest)})

    def load(self, saved: Saved) -> None:
        for i, buffer in enumerate(self._buffers):
            for (one,) in saved.tables[str(i)]:
                buffer.add(one)
        self._newest = list(saved.numbers["newest"])

    def _extend(
        self, partial: list[StreamTuple], first: int, last: int, results: list[Result]
    ) -> None:
        """Look for partners of a combination in the stream that follows its last one."""
        stream = (partial[-1].stream + 1) % self._streams
        partners = self._partners(partial, stream, last - self._window, first + self._window)
        if len(partial) == self._streams - 1:
            start = self._streams - partial[0].stream
            before, after = partial[start:], partial[:start]
            if stream > partial[0].stream:
                before, after = after, before
            results += [(*before, one, *after) for one in partners]
            return
        for one in partners:
            self._extend([*partial, one], min(first, one.time), max(last, one.time), results)

    def _partners(
        self, partial: list[StreamTuple], stream: int, low: int, high: int
    ) -> list[StreamTuple]:
        """The tuples of a stream in a period that fit a combination."""
        buffer, key = self._buffers[stream], partial[0].key
        if self.removes_when_visited:
            buffer.drop(key, self._oldest(stream))
        candidates = buffer.look(key)
        self.counters.time_tests += 2 * len(candidates)
        inside = [one for one in candidates if low <= one.time <= high]
        if buffer.by_key:
            return inside
        self.counters.value_tests += len(inside)
        return self.task.condition.among(partial, inside)

    def _oldest(self, stream: int) -> int:
        """What is older than this is out of reach of all that is to come from other streams."""
        newest = self._newest
        return min(newest[:stream] + newest[stream + 1 :]) - self._window

    def _sweep(self) -> None:
        for stream, buffer in enumerate(self._buffers):
            buffer.sweep(self._oldest(stream))
