"""EAGER MULTI-WAY NLJ: every new tuple on top of the order, as it arrives (Golab section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.algorithms.compute_join import loops_from
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.sliding_window import ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class EagerNLJ(MultiwayJoin):
    """Joins each new tuple at once with the other windows, in the global order.

    With an interval, old tuples expire only at its ends. By default the order is that of the
    streams.
    """

    def __init__(
        self, task: JoinTask, order: Sequence[int] | None = None, expire_every: int | None = None
    ) -> None:
        windows = [ScannedWindow() for _ in range(task.streams)]
        super().__init__(task, windows, expire_every, lazy=False)
        self._loops = loops_from(task, windows, order, self.counters)

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        join = self._loops[origin].join
        return [result for one in new for result in join(one)]
