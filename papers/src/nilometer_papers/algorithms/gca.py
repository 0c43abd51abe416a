"""GCA: the global conservative approach to windows that differ by pair (TR-010 section 5.1)."""

from __future__ import annotations

from collections.abc import Callable

from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.mw_join import MWJoin
from nilometer_papers.algorithms.refinement import Refinement
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class GCA(JoinAlgorithm):
    """Filters with an algorithm for the largest window; then tests the windows of all pairs."""

    def __init__(self, task: JoinTask, base: Callable[[JoinTask], JoinAlgorithm] = MWJoin) -> None:
        super().__init__(task)
        largest = task.network.largest_window
        self._filter = base(JoinTask.uniform(task.streams, largest, task.condition))
        self._refinement = Refinement(task)
        self.counters = self._filter.counters

    def process(self, arrival: StreamTuple) -> list[Result]:
        return self._refine(self._filter.process(arrival))

    def reach(self, stream: int, time: int) -> list[Result]:
        return self._refine(self._filter.reach(stream, time))

    def save(self) -> Saved:
        return self._filter.save()

    def load(self, saved: Saved) -> None:
        self._filter.load(saved)

    def _refine(self, candidates: list[Result]) -> list[Result]:
        results = self._refinement.refine(candidates, self.counters)
        self.counters.results -= len(candidates) - len(results)
        return results
