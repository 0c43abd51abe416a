"""MULTI-WAY HASH JOIN: each for-loop goes through one hash bucket (Golab section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nilometer_papers.algorithms.compute_join import loops_from
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.sliding_window import HashedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

BUCKETS: Final = 10
"""The default number of buckets of a window."""


class MultiwayHashJoin(MultiwayJoin):
    """Joins as the multi-way nested loops do, with a number of buckets for each window.

    Without an interval it is eager; with one it is lazy, and removes old tuples as often. The
    order is that of the streams if none is given.
    """

    def __init__(
        self,
        task: JoinTask,
        buckets: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
        every: int | None = None,
    ) -> None:
        windows = [HashedWindow(number) for number in buckets or [BUCKETS] * task.streams]
        super().__init__(task, windows, every, lazy=every is not None)
        self._loops = loops_from(task, windows, order, self.counters)

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        join = self._loops[origin].join
        return [result for one in new for result in join(one)]
