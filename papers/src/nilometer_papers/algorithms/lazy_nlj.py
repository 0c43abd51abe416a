"""LAZY MULTI-WAY NLJ: the new tuples of an interval on top of the order (Golab section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.algorithms.compute_join import loops_from
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_join import MultiwayJoin, default_interval
from nilometer_papers.algorithms.sliding_window import ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class LazyNLJ(MultiwayJoin):
    """Joins, every tau, each tuple that arrived since the last time, then removes old tuples.

    By default the order is that of the streams.
    """

    def __init__(
        self, task: JoinTask, order: Sequence[int] | None = None, every: int | None = None
    ) -> None:
        windows = [ScannedWindow() for _ in range(task.streams)]
        super().__init__(task, windows, every or default_interval(task), lazy=True)
        self._loops = loops_from(task, windows, order, self.counters)

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        join = self._loops[origin].join
        return [result for one in new for result in join(one)]
