"""FEW-join with hash tables that keep the order of arrival (SSDBM section 3.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import product

from nilometer_papers.algorithms.mw_join import MWJoin
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class OrderedHashTable(deque[StreamTuple]):
    """The tuples of a stream in order of arrival, overall and in each bucket.

    Linked lists would allow removal anywhere; only the oldest tuple is ever removed, and it is also
    the first of its bucket.
    """

    def __init__(self) -> None:
        super().__init__()
        self.buckets: dict[Hashable, deque[StreamTuple]] = {}

    def append(self, one: StreamTuple) -> None:
        super().append(one)
        bucket = self.buckets.get(one.key)
        if bucket is None:
            self.buckets[one.key] = deque((one,))
        else:
            bucket.append(one)

    def popleft(self) -> StreamTuple:
        one = super().popleft()
        bucket = self.buckets[one.key]
        bucket.popleft()
        if not bucket:
            del self.buckets[one.key]
        return one


class FEWHashJoin(MWJoin):
    """FEW-join that looks only at the buckets of the new tuple's key."""

    _buffers: Sequence[OrderedHashTable]

    def _join(self, arrival: StreamTuple) -> list[Result]:
        """All combinations of the probed buckets: in Mode 2 they need no test of time."""
        chosen: list[Sequence[StreamTuple]] = []
        for stream, table in enumerate(self._buffers):
            if stream == arrival.stream:
                chosen.append((arrival,))
                continue
            self.counters.probes += 1
            bucket = table.buckets.get(arrival.key)
            if bucket is None:
                return []
            chosen.append(bucket)
        return list(product(*chosen))

    def _new_buffer(self) -> OrderedHashTable:
        return OrderedHashTable()
