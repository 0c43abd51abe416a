"""BEW-join: the backward evaluation of a uniform clique, with nested loops (SSDBM section 3.1)."""

from __future__ import annotations

from nilometer_papers.algorithms.backward import BackwardJoin
from nilometer_papers.algorithms.buffers import ListBuffer
from nilometer_papers.algorithms.join_task import JoinTask


class BEWJoin(BackwardJoin):
    """The backward evaluation over FIFO queues, which it scans."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task, ListBuffer)
