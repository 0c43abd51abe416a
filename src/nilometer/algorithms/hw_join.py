"""HW-join: the pipelined hash W-join (TR-010 section 3.1.2)."""

from __future__ import annotations

from nilometer.algorithms.buffers import HashBuffer
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.left_deep import LeftDeepJoin, Step


class HWJoin(LeftDeepJoin):
    """A pipeline whose joins look up one bucket, and remove what is out there.

    The update routine for rarely probed buckets runs on the hash table to which a tuple is added,
    since only that one grows; it leaves nothing there that has been out for more than the window.
    """

    def __init__(self, task: JoinTask) -> None:
        assert task.window is not None
        super().__init__(task, [Step(task.window, task.window)] * (task.streams - 1), HashBuffer)
