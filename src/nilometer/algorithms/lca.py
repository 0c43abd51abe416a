"""LCA: the local conservative approach to windows that differ by pair (TR-010 section 5.1)."""

from __future__ import annotations

from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.mw_join import MWJoin
from nilometer.algorithms.refinement import Refinement
from nilometer.algorithms.stream_tuple import Result, StreamTuple
from nilometer.model.time import EARLIEST


class LCA(MWJoin):
    """MW-join in which each stream has its own largest window; then tests those of all pairs.

    The period ends with the first of the windows after the starting tuples, and the tuple whose
    window it is leaves at the end of Mode 2: others, also older ones, may still join.
    """

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task)
        self._refinement = Refinement(task)

    def _windows_of_streams(self) -> list[int]:
        """The largest window that each stream has with any other."""
        return [self.task.network.local_window(i) for i in range(self.task.streams)]

    def _mode_1(self) -> bool:
        """As in MW-join; two tuples are apart if the smaller of their windows does not reach."""
        streams, counters = self.task.streams, self.counters
        stream, included, first, high, last, low = self._sweeping, 0, 0, 0, EARLIEST, EARLIEST
        while included < streams:
            line, window = self._buffers[stream] or self._waiting[stream], self._windows[stream]
            time = line[0].time if line else self._reached[stream]
            counters.time_tests += 2
            if time < max(low, last - window) and line:
                line.popleft()
                counters.removed += 1
                continue
            # a new period keeps its left side: with windows that differ, it could be at an older
            # tuple than the last period was, and the sweep would never end
            last, low = max(last, time), max(low, time - window)
            if not included or time > min(high, first + window):
                included, first, high = 1, time, time + window
            elif not line:
                break
            else:
                included, first, high = included + 1, min(first, time), min(high, time + window)
            stream = (stream + 1) % streams
        self._sweeping = stream
        return included == streams and bool(self._buffers[stream] or self._waiting[stream])

    def _join(self, arrival: StreamTuple) -> list[Result]:
        """The candidates of the filtering step, refined."""
        return self._refinement.refine(super()._join(arrival), self.counters)
