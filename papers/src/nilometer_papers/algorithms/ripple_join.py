"""The ripple join, adapted to windows (TR-010 section 4.3)."""

from __future__ import annotations

from nilometer_papers.algorithms.backward import BackwardJoin
from nilometer_papers.algorithms.buffers import ListBuffer
from nilometer_papers.algorithms.cleanup import EVERY, Cleanup
from nilometer_papers.algorithms.join_algorithm import Saved
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class RippleJoin(BackwardJoin):
    """Extends the rectangle of all combinations by the new tuple with all that came before.

    It is the square ripple join, one tuple at a time, by nested loops over all streams. Windows
    are checked on what it combines; they do not tell it what to remove before the next clean-up.
    """

    removes_when_visited = False

    def __init__(self, task: JoinTask, cleanup: int = EVERY) -> None:
        super().__init__(task, ListBuffer)
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
