"""BEW-join with hash tables instead of FIFO queues (end of SSDBM section 3.1)."""

from __future__ import annotations

from nilometer_papers.algorithms.backward import BackwardJoin
from nilometer_papers.algorithms.buffers import HashBuffer
from nilometer_papers.algorithms.join_task import JoinTask


class BEWHashJoin(BackwardJoin):
    """The backward evaluation over hash tables, looking up one bucket."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task, HashBuffer)
