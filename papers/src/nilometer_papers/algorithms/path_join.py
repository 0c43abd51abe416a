"""Path W-joins: NLW-join and HW-join along a directed path (TR-010 section 5.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nilometer_papers.algorithms.buffers import BufferType, HashBuffer, ListBuffer
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.left_deep import LeftDeepJoin, Step
from nilometer_papers.algorithms.m_tuple import with_last_time


class PathJoin(LeftDeepJoin):
    """A pipeline in the order of the path, in which the period extends in one direction only.

    Of a combination only the timestamp of the last stream matters, since along the path it is the
    latest: the next stream joins it in [TS, TS + w], where w is the window of that step.
    """

    def __init__(self, task: JoinTask, kind: BufferType, order: Sequence[int]) -> None:
        steps = [Step(0, task.bounds[i][j]) for i, j in pairwise(order)]
        super().__init__(task, steps, kind, with_last_time, order)


class NLWPathJoin(PathJoin):
    """The path W-join by nested loops."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task, ListBuffer, range(task.streams))


class HWPathJoin(PathJoin):
    """The path W-join over hash tables."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task, HashBuffer, range(task.streams))
