"""XJoin, adapted to windows: a pipeline of symmetric hash joins (TR-010 section 4.3)."""

from __future__ import annotations

from nilometer.algorithms.buffers import hash_table
from nilometer.algorithms.cleanup import EVERY, Cleanup
from nilometer.algorithms.join_algorithm import Saved
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.left_deep import LeftDeepJoin, Step
from nilometer.algorithms.stream_tuple import Result, StreamTuple


class XJoin(LeftDeepJoin):
    """Keeps all that came in hash tables, and checks the window of what it finds there.

    XJoin joins two inputs, so more streams make a tree of such joins. Its stages for what does
    not fit into memory have no work here: all buffers are in memory.
    """

    removes_when_visited = False

    def __init__(self, task: JoinTask, cleanup: int = EVERY, buckets: int | None = None) -> None:
        """With a bucket for each key, or with so many."""
        assert task.window is not None
        steps = [Step(task.window, task.window)] * (task.streams - 1)
        super().__init__(task, steps, hash_table(buckets))
        self._cleanup = Cleanup(cleanup)

    def process(self, arrival: StreamTuple) -> list[Result]:
        results = super().process(arrival)
        if self._cleanup.due():
            self._sweep()
        return results

    def save(self) -> Saved:
        saved = super().save()
        saved.numbers["uncleaned"] = [self._cleanup.since]
        return saved

    def load(self, saved: Saved) -> None:
        super().load(saved)
        (self._cleanup.since,) = saved.numbers["uncleaned"]
