"""NLW-join and HW-join in STEAM's executor: joins that pull (TR-010 section 3.1, Figure 5)."""

from __future__ import annotations

from functools import reduce
from typing import Final

from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.m_tuple import one_tuple, with_all_times
from nilometer_papers.algorithms.steam.plan_operator import End, PlanOperator
from nilometer_papers.algorithms.steam.stream_manager import StreamManager
from nilometer_papers.algorithms.steam.stream_scan import StreamScan
from nilometer_papers.algorithms.steam.w_join import LEFT, RIGHT, WJoin, WJoinSpec
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

BUCKETS: Final = 128
"""The default size of each hash table; the papers do not say how many buckets they used."""


class PulledWJoin(JoinAlgorithm):
    """A left-deep plan of W-joins over StreamScans; a tuple is put into the queue of its scan.

    With one bucket it is NLW-join as in Figure 5, with more it is HW-join.
    """

    def __init__(self, task: JoinTask, buckets: int = 1) -> None:
        assert task.window is not None
        super().__init__(task)
        spec = WJoinSpec(task.window, task.condition, buckets)
        manager = StreamManager()
        self._scans = [StreamScan(manager, ()) for _ in range(task.streams)]
        self._joins: list[WJoin] = []
        root: PlanOperator = self._scans[0]
        for scan in self._scans[1:]:
            root = WJoin(root, scan, spec, self.counters)
            self._joins.append(root)
        self._root = root
        root.open()
        for scan in self._scans:
            scan.queue.attached += 1

    def process(self, arrival: StreamTuple) -> list[Result]:
        self.counters.tuples += 1
        self._scans[arrival.stream].queue.put(arrival)
        results: list[Result] = []
        while (pulled := self._root.get_next()) is not None:
            assert not isinstance(pulled, End)
            results.append(pulled.members)
        self.counters.results += len(results)
        return results

    def reach(self, stream: int, time: int) -> list[Result]:
        scan = self._scans[stream]
        if time > scan.time:
            scan.time = time
            for join in self._joins:
                join.sweep()
        return []

    def save(self) -> Saved:
        saved = Saved(numbers={"newest": [scan.time for scan in self._scans]})
        for i, join in enumerate(self._joins):
            for side, name in ((LEFT, "left"), (RIGHT, "right")):
                saved.tables[f"{name} {i}"] = [one.members for one in join.buffers[side]]
        return saved

    def load(self, saved: Saved) -> None:
        for scan, time in zip(self._scans, saved.numbers["newest"], strict=True):
            scan.time = time
        for i, join in enumerate(self._joins):
            for side, name in ((LEFT, "left"), (RIGHT, "right")):
                for first, *rest in saved.tables[f"{name} {i}"]:
                    join.buffers[side].add(reduce(with_all_times, rest, one_tuple(first)))
