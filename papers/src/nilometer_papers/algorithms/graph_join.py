"""BEW-join for windows between some pairs of streams (SSDBM section 4.2)."""

from __future__ import annotations

from nilometer.model.network import Matrix
from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.buffers import Buffer, BufferType, ListBuffer
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class GraphBEWJoin(JoinAlgorithm):
    """Joins each new tuple backward, along the windows of the graph.

    A stream looks only at the windows that connect it to the members found so far, and uses the
    intersection of their periods. So the windows of a combination have all been checked when it is
    complete, and the paper's refinement step finds nothing left to do.
    """

    def __init__(self, task: JoinTask, kind: BufferType = ListBuffer) -> None:
        super().__init__(task)
        given = task.network.given
        streams = range(task.streams)
        self._orders = [_order(given, start) for start in streams]
        """For each stream, the others in the order in which its tuples visit them."""
        self._buffers: list[Buffer[StreamTuple]] = [
            kind(self.counters, task.network.largest_window) for _ in streams
        ]
        self._newest = [EARLIEST] * task.streams

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        self._newest[arrival.stream] = arrival.time
        self._buffers[arrival.stream].take_in((arrival,), self._oldest(arrival.stream))
        partials: list[list[StreamTuple]] = [[arrival]]
        for stream in self._orders[arrival.stream]:
            if not partials:
                break
            self._buffers[stream].drop(arrival.key, self._oldest(stream))
            partials = [
                [*partial, one] for partial in partials for one in self._partners(partial, stream)
            ]
        self.counters.results += len(partials)
        return [tuple(sorted(one, key=_stream_of)) for one in partials]

    def reach(self, stream: int, time: int) -> list[Result]:
        if time > self._newest[stream]:
            self._newest[stream] = time
            for i, buffer in enumerate(self._buffers):
                buffer.sweep(self._oldest(i))
        return []

    def save(self) -> Saved:
        tables = {str(i): singles(buffer) for i, buffer in enumerate(self._buffers)}
        return Saved(tables, {"newest": list(self._newest)})

    def load(self, saved: Saved) -> None:
        for i, buffer in enumerate(self._buffers):
            for (one,) in saved.tables[str(i)]:
                buffer.add(one)
        self._newest = list(saved.numbers["newest"])

    def _partners(self, partial: list[StreamTuple], stream: int) -> list[StreamTuple]:
        """The tuples of a stream that match a combination."""
        given = self.task.network.given
        low = max(one.time - given[stream][one.stream] for one in partial)
        high = min(one.time + given[one.stream][stream] for one in partial)
        buffer = self._buffers[stream]
        candidates = buffer.look(partial[0].key)
        self.counters.time_tests += 2 * len(candidates)
        inside = [one for one in candidates if low <= one.time <= high]
        if buffer.by_key:
            return inside
        self.counters.value_tests += len(inside)
        return self.task.condition.among(partial, inside)

    def _oldest(self, stream: int) -> int:
        """The time before which tuples are out of reach of all others, by derived windows.

        The windows of its own stream alone would remove too much: a tuple that is out of its
        neighbours' reach can still be joined with old tuples of theirs by a stream farther away.
        """
        return self.task.network.horizon(stream, self._newest)


def _order(given: Matrix, start: int) -> tuple[int, ...]:
    """The other streams, each of which has a window with an earlier one."""
    visited = [start]
    while len(visited) < len(given):
        visited.append(next(j for j in range(len(given)) if _is_next(given, visited, j)))
    return tuple(visited[1:])


def _is_next(given: Matrix, visited: list[int], stream: int) -> bool:
    return stream not in visited and any(
        min(given[i][stream], given[stream][i]) < FOREVER for i in visited
    )


def _stream_of(one: StreamTuple) -> int:
    return one.stream
