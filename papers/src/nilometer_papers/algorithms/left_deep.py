"""A left-deep pipeline of binary joins (TR-010 section 3.1.1, Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.buffers import Buffer, BufferType
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.m_tuple import MTuple, one_tuple, with_all_times
from nilometer_papers.algorithms.partners import Matches, partners
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

Combine = Callable[[MTuple, StreamTuple], MTuple]


class Step(NamedTuple):
    """The period of an m_tuple over the next stream: [last - back, first + ahead]."""

    back: int
    ahead: int


class JoinNode:
    """One binary join: combinations come from the left, tuples of one stream from the right."""

    def __init__(self, pipeline: LeftDeepJoin, place: int, step: Step, kind: BufferType) -> None:
        task, counters, window = pipeline.task, pipeline.counters, max(step)
        self.left: Buffer[MTuple] = kind(counters, window, in_order=place == 1)
        self.right: Buffer[StreamTuple] = kind(counters, window)
        self._place = place
        self._back, self._ahead = step
        self._newest = pipeline.newest
        """V_left is what comes before the place of the right stream, V_right what is there."""
        self._condition, self._counters = task.condition, counters
        self._removes = pipeline.removes_when_visited

    def from_left(self, joined: Sequence[MTuple]) -> Matches:
        """Add the combinations of one new tuple, and join them with the right stream."""
        if not joined:
            return []
        if self._removes:
            self.left.take_in(joined, self.oldest_left)
            self.right.drop(joined[0].key, self.oldest_right)
        else:
            for one in joined:
                self.left.add(one)
        right, back, ahead = self.right, self._back, self._ahead
        condition, counters = self._condition, self._counters
        return [
            (one, partners(one, right, (one.last - back, one.time + ahead), condition, counters))
            for one in joined
        ]

    def from_right(self, one: StreamTuple) -> Matches:
        """Add a tuple of the right stream, and join it with the combinations."""
        if self._removes:
            self.right.take_in((one,), self.oldest_right)
            self.left.drop(one.key, self.oldest_left)
        else:
            self.right.add(one)
        low, high = one.time - self._ahead, one.time + self._back
        left = self.left.look(one.key)
        self._counters.time_tests += 2 * len(left)
        inside = [each for each in left if low <= each.time and each.last <= high]
        if not self.left.by_key:
            self._counters.value_tests += len(inside)
            inside = self._condition.combinations(one, inside)
        return [(each, (one,)) for each in inside]

    @property
    def oldest_left(self) -> int:
        """The time before which tuples are out of reach of all future tuples from the right."""
        return self._newest[self._place] - self._ahead

    @property
    def oldest_right(self) -> int:
        """The time before which tuples are out of reach of all future tuples from the left."""
        return min(self._newest[: self._place]) - self._back

    def sweep(self) -> None:
        """Remove expired entries from both buffers."""
        self.left.sweep(self.oldest_left)
        self.right.sweep(self.oldest_right)


class LeftDeepJoin(JoinAlgorithm):
    """Joins the first two streams, the result with the third, and so on.

    A combination waits only for the stream on its right, so it expires when that has advanced by
    more than the window; a tuple on the right expires when all streams on its left have. Both are
    removed where a join looks for partners; so that a buffer cannot grow while nobody looks at it,
    it is also cleaned where something is added.
    """

    removes_when_visited = True
    """Whether visiting a buffer removes old tuples."""

    def __init__(
        self,
        task: JoinTask,
        steps: Sequence[Step],
        kind: BufferType,
        combine: Combine = with_all_times,
        order: Sequence[int] | None = None,
    ) -> None:
        super().__init__(task)
        self.newest = [EARLIEST] * task.streams
        """The newest timestamp of each source stream, in the order of the pipeline."""
        self._combine = combine
        self._order = tuple(order or range(task.streams))
        self._nodes = [JoinNode(self, i, step, kind) for i, step in enumerate(steps, 1)]

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        place = self._order.index(arrival.stream)
        self.newest[place] = arrival.time
        if place == 0:
            matches = self._nodes[0].from_left([one_tuple(arrival)])
        else:
            matches = self._nodes[place - 1].from_right(arrival)
        combine = self._combine
        for node in self._nodes[max(place, 1) :]:
            matches = node.from_left(
                [combine(one, each) for one, right in matches for each in right]
            )
        results = [(*one.members, each) for one, right in matches for each in right]
        self.counters.results += len(results)
        return results if self._order[0] == 0 else [one[::-1] for one in results]

    def reach(self, stream: int, time: int) -> list[Result]:
        place = self._order.index(stream)
        if time > self.newest[place]:
            self.newest[place] = time
            if self.removes_when_visited:
                self._sweep()
        return []

    def save(self) -> Saved:
        saved = Saved(numbers={"newest": list(self.newest)})
        for i, node in enumerate(self._nodes):
            saved.tables[f"left {i}"] = [one.members for one in node.left]
            saved.tables[f"right {i}"] = singles(node.right)
        return saved

    def load(self, saved: Saved) -> None:
        self.newest[:] = saved.numbers["newest"]
        for i, node in enumerate(self._nodes):
            for first, *rest in saved.tables[f"left {i}"]:
                node.left.add(reduce(self._combine, rest, one_tuple(first)))
            for (one,) in saved.tables[f"right {i}"]:
                node.right.add(one)

    def _sweep(self) -> None:
        for node in self._nodes:
            node.sweep()
