"""The path W-join in both directions: the union of two queries (TR-010 section 5.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow
from nilometer_papers.algorithms.buffers import BufferType, ListBuffer
from nilometer_papers.algorithms.conditions import Condition, SameKey
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved
from nilometer_papers.algorithms.join_task import JoinTask, names
from nilometer_papers.algorithms.path_join import PathJoin
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class BothWays(JoinAlgorithm):
    """Finds what follows a path from its first stream to its last, or back; each result once.

    There is a window for each step of the path, the same in both directions. `task` is the path in
    the forward direction: the union of two directions is not one set of windows.
    """

    def __init__(
        self,
        windows: Sequence[int],
        kind: BufferType = ListBuffer,
        condition: Condition | None = None,
    ) -> None:
        streams = names(len(windows) + 1)
        steps = list(zip(pairwise(streams), windows, strict=True))
        there = TimeNetwork(streams, tuple(PairWindow(a, b, 0, w) for (a, b), w in steps))
        back = TimeNetwork(streams, tuple(PairWindow(b, a, 0, w) for (a, b), w in steps))
        condition = condition or SameKey()
        assert isinstance(condition, SameKey) or kind is ListBuffer
        order = range(len(streams))
        super().__init__(JoinTask(there, condition))
        self._there = PathJoin(self.task, kind, order)
        self._back = PathJoin(JoinTask(back, condition), kind, order[::-1])

    def process(self, arrival: StreamTuple) -> list[Result]:
        there = self._there.process(arrival)
        back = self._back.process(arrival)
        # A path in both directions has all its times equal, so it is found in both at once.
        results = there + [one for one in back if one[0].time > one[-1].time]
        self._count(len(results))
        return results

    def reach(self, stream: int, time: int) -> list[Result]:
        return self._there.reach(stream, time) + self._back.reach(stream, time)

    def save(self) -> Saved:
        there, back = self._there.save(), self._back.save()
        tables = {f"there {name}": table for name, table in there.tables.items()}
        tables |= {f"back {name}": table for name, table in back.tables.items()}
        numbers = {"there": there.numbers["newest"], "back": back.numbers["newest"]}
        return Saved(tables, numbers)

    def load(self, saved: Saved) -> None:
        for way, join in (("there", self._there), ("back", self._back)):
            tables = {
                name.removeprefix(f"{way} "): table
                for name, table in saved.tables.items()
                if name.startswith(f"{way} ")
            }
            join.load(Saved(tables, {"newest": saved.numbers[way]}))

    def _count(self, results: int) -> None:
        there, back = self._there.counters, self._back.counters
        self.counters.tuples += 1
        self.counters.results += results
        self.counters.time_tests = there.time_tests + back.time_tests
        self.counters.value_tests = there.value_tests + back.value_tests
        self.counters.probes = there.probes + back.probes
        self.counters.removed = there.removed + back.removed
