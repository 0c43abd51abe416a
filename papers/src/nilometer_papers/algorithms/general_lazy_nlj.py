"""GENERAL LAZY MULTI-WAY NLJ: an order for each origin, new tuples at any place (Golab 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.algorithms.general_compute_join import GeneralComputeJoin
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_join import MultiwayJoin, default_interval
from nilometer_papers.algorithms.sliding_window import ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class GeneralLazyNLJ(MultiwayJoin):
    """Joins, every tau, the tuples that arrived since the last time, each stream in its own order.

    ``orders`` are the O_i: for each origin, all streams, itself at any place. If none are given
    the origin comes first, the other streams follow.
    """

    def __init__(
        self,
        task: JoinTask,
        orders: Sequence[Sequence[int]] | None = None,
        every: int | None = None,
    ) -> None:
        windows = [ScannedWindow() for _ in range(task.streams)]
        super().__init__(task, windows, every or default_interval(task), lazy=True)
        streams = range(task.streams)
        plans = orders or [[i, *(j for j in streams if j != i)] for i in streams]
        self._loops = [
            GeneralComputeJoin(task, windows, plan, i, self.counters)
            for i, plan in enumerate(plans)
        ]

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        return self._loops[origin].join(new)
