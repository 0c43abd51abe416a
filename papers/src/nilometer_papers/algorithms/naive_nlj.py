"""NAIVE MULTI-WAY NLJ: every new tuple at its window's place in the one order (Golab 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.algorithms.general_compute_join import GeneralComputeJoin
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.sliding_window import ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class NaiveNLJ(MultiwayJoin):
    """Follows the plan's order whichever stream a new tuple is from, and recomputes what is above.

    With an interval it is lazy, and verifies that nothing had expired when the new tuple arrived
    (the lower part of Golab table 3); by default the windows' order is that of the streams.
    """

    def __init__(
        self, task: JoinTask, order: Sequence[int] | None = None, every: int | None = None
    ) -> None:
        windows = [ScannedWindow() for _ in range(task.streams)]
        super().__init__(task, windows, every, lazy=every is not None)
        plan = list(range(task.streams)) if order is None else order
        self._loops = [
            GeneralComputeJoin(task, windows, plan, i, self.counters) for i in range(task.streams)
        ]

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        return self._loops[origin].join(new)
