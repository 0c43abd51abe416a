"""HYBRID NLJ-HASH JOIN: hash tables where they exist, scans elsewhere (Golab section 3.5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from nilometer_papers.algorithms.compute_join import loops_from
from nilometer_papers.algorithms.hybrid_condition import equal_streams
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_hash_join import BUCKETS
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.sliding_window import HashedWindow, ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class HybridJoin(MultiwayJoin):
    """Joins windows of equal keys and windows under other conditions in one operator.

    ``buckets`` says which windows have a hash table, and how large; by default all windows of equal
    keys have one. Without an interval it is eager, with one lazy. By default the order is that of
    the streams.
    """

    def __init__(
        self,
        task: JoinTask,
        buckets: Mapping[int, int] | None = None,
        order: Sequence[int] | None = None,
        every: int | None = None,
    ) -> None:
        equal = equal_streams(task.condition, task.streams)
        numbers = dict.fromkeys(equal, BUCKETS) if buckets is None else buckets
        assert equal >= numbers.keys(), "hash tables are for streams of equal keys"
        windows = [
            PartlyHashedWindow(numbers[i], equal) if i in numbers else ScannedWindow()
            for i in range(task.streams)
        ]
        super().__init__(task, windows, every, lazy=every is not None)
        self._loops = loops_from(task, windows, order, self.counters)

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        join = self._loops[origin].join
        return [result for one in new for result in join(one)]


class PartlyHashedWindow(HashedWindow):
    """A window in hash buckets, for combinations that have a tuple of certain streams."""

    def __init__(self, buckets: int, equal: frozenset[int]) -> None:
        super().__init__(buckets)
        self._equal = equal

    def candidates(self, partial: Sequence[StreamTuple]) -> Collection[StreamTuple]:
        """The bucket of the required key; all tuples if the key is not known yet."""
        for one in partial:
            if one.stream in self._equal:
                return super().candidates([one])
        return list(chain.from_iterable(self.lists))
