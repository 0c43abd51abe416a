"""GENERALCOMPUTEJOIN: for-loops with new tuples at any position (Golab section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.compute_join import ComputeJoin, is_newer
from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.sliding_window import SlidingWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class GeneralComputeJoin:
    """For new tuples of one stream: loops through all windows in an order that names all streams.

    Loops above that of the new tuples cannot test time. They maintain the period in which a new
    tuple would find all their members in time, and the loop of the new tuples tests it.
    """

    def __init__(
        self,
        task: JoinTask,
        windows: Sequence[SlidingWindow],
        order: Sequence[int],
        origin: int,
        counters: Counters,
    ) -> None:
        assert task.stream_windows is not None
        self._condition = task.condition
        self._counters = counters
        self._above = [
            (windows[j], task.stream_windows[j], is_newer(j, origin))
            for j in order[: order.index(origin)]
        ]
        self._below = ComputeJoin(task, windows, order, origin, counters)

    def join(self, new: list[StreamTuple]) -> list[Result]:
        """The results of new tuples."""
        results: list[Result] = []
        self._loop([], new, EARLIEST, FOREVER, results)
        return results

    def _loop(
        self,
        partial: list[StreamTuple],
        new: list[StreamTuple],
        first: int,
        last: int,
        results: list[Result],
    ) -> None:
        if len(partial) == len(self._above):
            self._loop_through_new(partial, new, first, last, results)
            return
        window, length, newer = self._above[len(partial)]
        matches = window.candidates(partial)
        if partial:
            self._counters.visited += len(matches)
            self._counters.value_tests += len(matches)
            matches = self._condition.among(partial, matches)
        for one in matches:
            self._loop(
                [*partial, one],
                new,
                max(first, one.time + newer),
                min(last, one.time + length),
                results,
            )

    def _loop_through_new(
        self,
        partial: list[StreamTuple],
        new: list[StreamTuple],
        first: int,
        last: int,
        results: list[Result],
    ) -> None:
        matches = new
        if partial:
            inside = [one for one in new if first <= one.time <= last]
            self._counters.visited += len(new)
            self._counters.time_tests += 2 * len(new)
            self._counters.value_tests += len(inside)
            matches = self._condition.among(partial, inside)
        for one in matches:
            self._below.pass_down(partial, [one], 0, one.time, results)
