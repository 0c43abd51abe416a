"""LCA: the local conservative approach to windows that differ by pair (TR-010 section 5.1)."""

from __future__ import annotations

from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.join_algorithm import Saved
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.mw_join import MWJoin
from nilometer_papers.algorithms.refinement import Refinement
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class LCA(MWJoin):
    """MW-join in which each stream has its own largest window; then tests those of all pairs.

    The period ends with the first of the windows after the starting tuples, and the tuple whose
    window it is leaves at the end of Mode 2: others, also older ones, may still join.
    """

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task)
        self._refinement = Refinement(task)
        self._first, self._last = FOREVER, EARLIEST
        """The oldest and the newest of the first tuples that are in the period."""

    def save(self) -> Saved:
        saved = super().save()
        saved.numbers["extremes"] = [self._first, self._last]
        return saved

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._first, self._last = saved.numbers["extremes"]

    def _windows_of_streams(self) -> list[int]:
        """The largest window of each stream with any other."""
        return [self.task.network.local_window(i) for i in range(self.task.streams)]

    def _drop_whose_window_ends(self) -> None:
        super()._drop_whose_window_ends()
        self._first, self._last = FOREVER, EARLIEST

    def _mode_1(self) -> None:
        """As in MW-join; two tuples are apart if the smaller of their windows does not reach."""
        streams, counters = self._streams, self.counters
        stream, included, low, high = self._sweeping, self._included, self._low, self._high
        first, last = self._first, self._last
        while included < streams:
            line, window = self._buffers[stream] or self._waiting[stream], self._windows[stream]
            time = line[0].time if line else self._reached[stream]
            counters.time_tests += 2
            if time < max(low, last - window) and line:
                line.popleft()
                counters.removed += 1
                continue
            # A new period keeps what the last one knew of the past: as windows differ, it may be
            # around an older tuple than the last one, and the sweep could go on for ever.
            low, last = max(low, time - window), max(last, time)
            if time > min(high, first + window):
                included, first, high = (1, time, time + window) if line else (0, FOREVER, FOREVER)
            elif line:
                included, first, high = included + 1, min(first, time), min(high, time + window)
            else:
                break
            stream = (stream + 1) % streams
        self._sweeping, self._included, self._low, self._high = stream, included, low, high
        self._first, self._last = first, last

    def _join(self, arrival: StreamTuple) -> list[Result]:
        """The candidates of the filtering step, refined."""
        return self._refinement.refine(super()._join(arrival), self.counters)
