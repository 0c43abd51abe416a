"""A chunk: immutable rows of one stream with their times, hashes of keys, and an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s, UInt64s, as_int64
from nilometer.kernels.indexes import (
    Index,
    KeyTimeIndex,
    NoIndex,
    TimeIndex,
    order_by_key_and_time,
)
from nilometer.kernels.key_hashes import key_hashes


class Kernel(StrEnum):
    """How candidates are found; see `kernels.indexes`."""

    HASH = "hash"
    MERGE = "merge"
    NESTED = "nested"


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the time and the key stand among the columns of a stream."""

    time: int
    keys: tuple[int, ...]

    def times(self, rows: pa.RecordBatch) -> Int64s:
        return as_int64(rows.column(self.time))

    def hashes(self, rows: pa.RecordBatch) -> UInt64s:
        """Hashes of the keys; all the same where there is no key."""
        if not self.keys:
            return np.zeros(len(rows), dtype=np.uint64)
        return key_hashes([rows.column(k) for k in self.keys])


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows in the order that their index wants; never empty."""

    rows: pa.RecordBatch
    times: Int64s
    hashes: UInt64s
    index: Index

    def __len__(self) -> int:
        return len(self.times)

    @property
    def first(self) -> int:
        return self.index.first if isinstance(self.index, KeyTimeIndex) else int(self.times.min())

    @property
    def last(self) -> int:
        return self.index.last if isinstance(self.index, KeyTimeIndex) else int(self.times.max())


def make_chunk(rows: pa.RecordBatch, layout: RowLayout, kernel: Kernel) -> Chunk:
    """A chunk of these rows, of which there must be some."""
    times, hashes = layout.times(rows), layout.hashes(rows)
    if kernel is Kernel.NESTED:
        return Chunk(rows, times, hashes, NoIndex(len(times)))
    if kernel is Kernel.MERGE:
        order = np.argsort(times)
        index: Index = TimeIndex(times[order])
    else:
        index, order = order_by_key_and_time(hashes, times)
    return Chunk(rows.take(pa.array(order)), times[order], hashes[order], index)


def keep_rows(chunk: Chunk, kept: Bools) -> Chunk:
    """The same chunk without the rows that are not kept; some must be."""
    places = np.flatnonzero(kept)
    rows = chunk.rows.take(pa.array(places))
    times, hashes = chunk.times[places], chunk.hashes[places]
    return Chunk(rows, times, hashes, _narrow(chunk.index, places, times))


def _narrow(index: Index, places: Int64s, times: Int64s) -> Index:
    if isinstance(index, KeyTimeIndex):
        return KeyTimeIndex(
            index.origin,
            int(times.min()),
            int(times.max()),
            index.time_bits,
            index.shift,
            index.sort_keys[places],
        )
    return TimeIndex(times) if isinstance(index, TimeIndex) else NoIndex(len(places))


def merge_chunks(chunks: Sequence[Chunk], layout: RowLayout, kernel: Kernel) -> Chunk:
    """One chunk with the rows of all."""
    return make_chunk(pa.concat_batches([chunk.rows for chunk in chunks]), layout, kernel)
