"""BEW-join: the backward evaluation of a uniform clique, with nested loops (SSDBM section 3.1)."""

from __future__ import annotations

from nilometer.algorithms.backward import BackwardJoin
from nilometer.algorithms.buffers import ListBuffer
from nilometer.algorithms.join_task import JoinTask


class BEWJoin(BackwardJoin):
    """The backward evaluation over FIFO queues, which it scans."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task, ListBuffer)
