"""BEW-join: the backward evaluation of a uniform clique, with nested loops (SSDBM section 3.1)."""

from __future__ import annotations

from collections import deque

from nilometer.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.stream_tuple import Result, StreamTuple
from nilometer.model.time import EARLIEST


class BEWJoin(JoinAlgorithm):
    """Joins each new tuple at once with the buffers of the other streams, one after the other.

    The period in which partners may lie begins with twice the window around the new tuple and
    shrinks with every member. Visiting a buffer removes the tuples that are more than the window
    older than the newest of all other streams.
    """

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task)
        assert task.window is not None
        self._window = task.window
        self._buffers: list[deque[StreamTuple]] = [deque() for _ in range(task.streams)]
        self._newest = [EARLIEST] * task.streams
        """The vector of the newest timestamps, stream by stream."""

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        self._newest[arrival.stream] = arrival.time
        self._buffers[arrival.stream].append(arrival)
        results: list[Result] = []
        self._extend([arrival], arrival.time, arrival.time, results)
        self.counters.results += len(results)
        return results

    def save(self) -> Saved:
        tables = {str(i): singles(buffer) for i, buffer in enumerate(self._buffers)}
        return Saved(tables, {"newest": list(self._newest)})

    def load(self, saved: Saved) -> None:
        for i, buffer in enumerate(self._buffers):
            buffer.extend(one for (one,) in saved.tables[str(i)])
        self._newest = list(saved.numbers["newest"])

    def _extend(
        self, partial: list[StreamTuple], first: int, last: int, results: list[Result]
    ) -> None:
        """Look for partners of a combination in the stream that follows its last one."""
        streams = self.task.streams
        if len(partial) == streams:
            start = partial[0].stream
            results.append(tuple(partial[streams - start :] + partial[: streams - start]))
            return
        stream = (partial[-1].stream + 1) % streams
        buffer = self._buffers[stream]
        self._remove_old(stream)
        low, high = last - self._window, first + self._window
        self.counters.time_tests += 2 * len(buffer)
        inside = [one for one in buffer if low <= one.time <= high]
        self.counters.value_tests += len(inside)
        for one in self.task.condition.among(partial, inside):
            self._extend([*partial, one], min(first, one.time), max(last, one.time), results)

    def _remove_old(self, stream: int) -> None:
        """Drop what is more than the window older than the newest of all other streams."""
        buffer = self._buffers[stream]
        oldest = min(time for i, time in enumerate(self._newest) if i != stream) - self._window
        self.counters.time_tests += 1
        while buffer and buffer[0].time < oldest:
            buffer.popleft()
            self.counters.removed += 1
            self.counters.time_tests += 1
