"""HYBRID NLJ-HASH JOIN: hash tables where they exist, scans elsewhere (Golab section 3.5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from nilometer.errors import InputError
from nilometer_papers.algorithms.compute_join import loops_from
from nilometer_papers.algorithms.hybrid_condition import SharedKey, shared_keys
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_hash_join import BUCKETS
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.sliding_window import ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class HybridJoin(MultiwayJoin):
    """Joins windows of equal keys and windows under other conditions in one operator.

    ``buckets`` says which windows have a hash table, and how large; by default all windows that
    share a key with another have one. Without an interval it is eager, with one lazy. By default
    the order is that of the streams.
    """

    def __init__(
        self,
        task: JoinTask,
        buckets: Mapping[int, int] | None = None,
        order: Sequence[int] | None = None,
        every: int | None = None,
    ) -> None:
        keys = shared_keys(task.condition, task.streams)
        own = [[key for key in keys if i in key.streams] for i in range(task.streams)]
        if buckets is None:
            buckets = {i: BUCKETS for i, has in enumerate(own) if has}
        if without := [task.network.streams[i] for i in sorted(buckets) if not own[i]]:
            raise InputError(
                f"there is no key for a hash table of {', '.join(without)}",
                detail="tuples are looked up by a key that is shared with another stream",
                hint="give 0 buckets where there is none",
            )
        windows = [
            PartlyHashedWindow(buckets[i], own[i]) if i in buckets else ScannedWindow()
            for i in range(task.streams)
        ]
        super().__init__(task, windows, every, lazy=every is not None)
        self._loops = loops_from(task, windows, order, self.counters)

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        join = self._loops[origin].join
        return [result for one in new for result in join(one)]


class PartlyHashedWindow:
    """A window in hash buckets, for combinations that have a key of its stream.

    Where the stream has several keys, there is a hash table for each of them.
    """

    def __init__(self, buckets: int, keys: Sequence[SharedKey]) -> None:
        self._buckets, self._keys = buckets, keys
        self._tables: list[list[deque[StreamTuple]]] = [
            [deque() for _ in range(buckets)] for _ in keys
        ]
        self.lists: Sequence[deque[StreamTuple]] = tuple(chain.from_iterable(self._tables))

    def __iter__(self) -> Iterator[StreamTuple]:
        return iter(sorted(self._all(), key=lambda one: one.time))

    def insert(self, one: StreamTuple) -> None:
        """Add the newest tuple of the stream to its buckets."""
        for key, table in zip(self._keys, self._tables, strict=True):
            table[hash(key.of(one)) % self._buckets].append(one)

    def candidates(self, partial: Sequence[StreamTuple]) -> Collection[StreamTuple]:
        """The smallest bucket of the keys that are known; all tuples if none is known yet."""
        buckets = [
            table[hash(key.of(one)) % self._buckets]
            for key, table in zip(self._keys, self._tables, strict=True)
            for one in partial
            if one.stream in key.streams
        ]
        return min(buckets, key=len) if buckets else list(self._all())

    def _all(self) -> Iterator[StreamTuple]:
        return chain.from_iterable(self._tables[0])
