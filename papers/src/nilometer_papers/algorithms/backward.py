"""The iteration of a new tuple over the buffers of all other streams (SSDBM section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.buffers import Buffer, BufferType
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.m_tuple import MTuple, one_tuple, with_all_times
from nilometer_papers.algorithms.partners import Matches, partners
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class BackwardJoin(JoinAlgorithm):
    """Joins each new tuple at once with the buffers of the other streams, one after another.

    The period in which partners may lie begins with twice the window around the new tuple and
    shrinks with every member. Visiting a buffer removes the tuples that are more than the window
    older than the newest of all other streams.
    """

    removes_when_visited = True
    """Whether visiting a buffer removes old tuples."""

    def __init__(self, task: JoinTask, kind: BufferType) -> None:
        super().__init__(task)
        assert task.window is not None
        self._window = task.window
        self._streams = streams = task.streams
        self._visits = [[(i + k) % streams for k in range(1, streams)] for i in range(streams)]
        """The buffers that the tuples of a stream visit: those of the streams that follow."""
        self._buffers: list[Buffer[StreamTuple]] = [
            kind(self.counters, task.window) for _ in range(task.streams)
        ]
        self._newest = [EARLIEST] * task.streams
        """The vector of the newest timestamps, stream by stream."""

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        stream = arrival.stream
        self._newest[stream] = arrival.time
        if self.removes_when_visited:
            self._buffers[stream].take_in((arrival,), self._oldest(stream))
        else:
            self._buffers[stream].add(arrival)
        second, *others = self._visits[stream]
        matches = self._join(second, [one_tuple(arrival)])
        for other in others:
            joined = [with_all_times(one, each) for one, right in matches for each in right]
            matches = self._join(other, joined)
        # Members are in the order of the visits, which starts with the stream of the arrival.
        end = self._streams - stream if stream else 0
        results = [
            (*one.members[end:], each, *one.members[:end])
            for one, right in matches
            for each in right
        ]
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

    def _join(self, stream: int, joined: Sequence[MTuple]) -> Matches:
        """Join the combinations of one new tuple with the buffer of one more stream."""
        if not joined:
            return []
        buffer, window = self._buffers[stream], self._window
        if self.removes_when_visited:
            buffer.drop(joined[0].key, self._oldest(stream))
        condition, counters = self.task.condition, self.counters
        return [
            (
                one,
                partners(one, buffer, (one.last - window, one.time + window), condition, counters),
            )
            for one in joined
        ]

    def _oldest(self, stream: int) -> int:
        """The time before which tuples are out of reach of all future tuples of other streams."""
        newest = self._newest
        return min(newest[:stream] + newest[stream + 1 :]) - self._window

    def _sweep(self) -> None:
        for stream, buffer in enumerate(self._buffers):
            buffer.sweep(self._oldest(stream))
