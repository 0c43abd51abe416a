"""BEW-join with hash tables in the place of FIFO queues (SSDBM section 3.1, at its end)."""

from __future__ import annotations

from nilometer.algorithms.backward import BackwardJoin
from nilometer.algorithms.buffers import HashBuffer
from nilometer.algorithms.join_task import JoinTask


class BEWHashJoin(BackwardJoin):
    """The backward evaluation over hash tables, of which it looks up one bucket."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task, HashBuffer)
