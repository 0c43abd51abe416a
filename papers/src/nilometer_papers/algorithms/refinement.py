"""The refinement step of the conservative approaches (TR-010 section 5.1)."""

from __future__ import annotations

from itertools import combinations

from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result


class Refinement:
    """Keeps those candidates of a filter that every window allows."""

    def __init__(self, task: JoinTask) -> None:
        pairs = combinations(range(task.streams), 2)
        self._pairs = [(i, j, -task.bounds[j][i], task.bounds[i][j]) for i, j in pairs]

    def refine(self, candidates: list[Result], counters: Counters) -> list[Result]:
        """Test the window of each pair of streams on what the previous windows have left."""
        for i, j, low, high in self._pairs:
            counters.time_tests += 2 * len(candidates)
            candidates = [one for one in candidates if low <= one[j].time - one[i].time <= high]
        return candidates
