"""HW-join: the pipelined hash W-join (TR-010 section 3.1.2)."""

from __future__ import annotations

from nilometer_papers.algorithms.buffers import hash_table
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.left_deep import LeftDeepJoin, Step


class HWJoin(LeftDeepJoin):
    """A pipeline whose joins look up one bucket, and remove expired tuples there.

    The update routine for rarely probed buckets runs on the hash table to which a tuple is added,
    since only that one grows; it leaves nothing there that expired longer ago than the window.
    """

    def __init__(self, task: JoinTask, buckets: int | None = None) -> None:
        """With one bucket for each key, or with this many."""
        assert task.window is not None
        steps = [Step(task.window, task.window)] * (task.streams - 1)
        super().__init__(task, steps, hash_table(buckets))
