"""XJoin, adapted to windows: a pipeline of symmetric hash joins (TR-010 section 4.3)."""

from __future__ import annotations

from nilometer_papers.algorithms.buffers import hash_table
from nilometer_papers.algorithms.cleanup import EVERY, Cleanup
from nilometer_papers.algorithms.join_algorithm import Saved
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.left_deep import LeftDeepJoin, Step
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class XJoin(LeftDeepJoin):
    """Keeps everything that came in hash tables, and checks the windows of what it finds there.

    XJoin joins two inputs, so more streams form a tree of such joins. Its stages for data that does
    not fit into memory have nothing to do here: all buffers are in memory.
    """

    removes_when_visited = False

    def __init__(self, task: JoinTask, cleanup: int = EVERY, buckets: int | None = None) -> None:
        """With a bucket for each key, or with a given number of buckets."""
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
