"""COMPUTEJOIN: the for-loops that join a new tuple with the other windows (Golab section 3.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter

from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.sliding_window import SlidingWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class ComputeJoin:
    """For new tuples of one stream: the loops through other windows, nested below theirs.

    Above them there may be loops through further windows, which the order names before the origin.
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
        self._loops = [
            (windows[j], task.stream_windows[j], is_newer(j, origin))
            for j in order[order.index(origin) + 1 :]
        ]
        self._by_stream = itemgetter(*(order.index(i) for i in range(task.streams)))

    def join(self, new: StreamTuple) -> list[Result]:
        """The results of a new tuple whose loop is the outermost."""
        results: list[Result] = []
        self.pass_down([], [new], 0, new.time, results)
        return results

    def pass_down(
        self,
        partial: list[StreamTuple],
        matches: Collection[StreamTuple],
        depth: int,
        time: int,
        results: list[Result],
    ) -> None:
        """Continue with each extension of a combination; `time` is that of its new tuple."""
        if depth == len(self._loops):
            by_stream = self._by_stream
            results += [by_stream((*partial, one)) for one in matches]
            return
        for one in matches:
            self._loop([*partial, one], depth, time, results)

    def _loop(
        self, partial: list[StreamTuple], depth: int, time: int, results: list[Result]
    ) -> None:
        window, length, newer = self._loops[depth]
        tuples = window.candidates(partial)
        first, last = time - length, time - newer
        inside = [one for one in tuples if first <= one.time <= last]
        counters = self._counters
        counters.visited += len(tuples)
        counters.time_tests += 2 * len(tuples)
        counters.value_tests += len(inside)
        matches = self._condition.among(partial, inside)
        if matches:
            self.pass_down(partial, matches, depth + 1, time, results)


def is_newer(stream: int, than: int) -> int:
    """The minimum age difference to a tuple of another stream: 1 where equal is too new.

    Otherwise two tuples of equal times would find each other twice.
    """
    return int(stream > than)


def loops_from(
    task: JoinTask,
    windows: Sequence[SlidingWindow],
    order: Sequence[int] | None,
    counters: Counters,
) -> list[ComputeJoin]:
    """The loops for each origin: new tuples outermost, then the global order (Golab table 4)."""
    everywhere = list(range(task.streams)) if order is None else order
    return [
        ComputeJoin(task, windows, [i, *(j for j in everywhere if j != i)], i, counters)
        for i in range(task.streams)
    ]
