"""NLW-join: the pipelined nested-loop W-join (TR-010 section 3.1.1)."""

from __future__ import annotations

from nilometer_papers.algorithms.buffers import ListBuffer
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.left_deep import LeftDeepJoin, Step


class NLWJoin(LeftDeepJoin):
    """A pipeline whose joins scan their buffers, and remove expired tuples as they do."""

    def __init__(self, task: JoinTask) -> None:
        assert task.window is not None
        super().__init__(task, [Step(task.window, task.window)] * (task.streams - 1), ListBuffer)
