"""NAIVE MULTI-WAY NLJ: every new tuple at its window's place in the one order (Golab 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.algorithms.general_compute_join import GeneralComputeJoin
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.multiway_join import MultiwayJoin
from nilometer.algorithms.sliding_window import ScannedWindow
from nilometer.algorithms.stream_tuple import Result, StreamTuple


class NaiveNLJ(MultiwayJoin):
    """Follows the order of the plan wherever a new tuple comes from, and recomputes what is above.

    With an interval it is lazy, and verifies that nothing has expired when the new tuple came
    (the lower part of Golab table 3); the windows' order is that of the streams if none is given.
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
