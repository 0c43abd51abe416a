"""A chunk: immutable rows of one stream with their times, hashes of keys, and indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int32s, Int64s, UInt64s, as_int64
from nilometer.kernels.indexes import (
    Index,
    KeyTimeIndex,
    NoIndex,
    TimeIndex,
    order_by_key_and_time,
)
from nilometer.kernels.key_hashes import key_hashes

StreamKeys: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""For every join key of the query, its columns in one stream; None if it has none."""


class Kernel(StrEnum):
    """How a join looks up candidates; see `kernels.indexes`."""

    HASH = "hash"
    MERGE = "merge"
    NESTED = "nested"


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The positions of the time and the keys among the columns of a stream."""

    time: int
    keys: StreamKeys
    until: int | None = None
    """The column that says when a row leaves its ROWS window, in rows that have one."""

    @property
    def own(self) -> tuple[int, ...]:
        """The numbers of the keys in which the stream takes part."""
        return tuple(k for k, columns in enumerate(self.keys) if columns is not None)

    @property
    def key_columns(self) -> tuple[int, ...]:
        """The columns of all keys."""
        return tuple({column: None for columns in self.keys for column in columns or ()})

    def times(self, rows: pa.RecordBatch) -> Int64s:
        return as_int64(rows.column(self.time))

    def untils(self, rows: pa.RecordBatch) -> Int64s | None:
        return None if self.until is None else as_int64(rows.column(self.until))

    def hashes(self, rows: pa.RecordBatch) -> dict[int, UInt64s]:
        """Hashes of the keys in which the stream takes part."""
        return {
            k: key_hashes([rows.column(c) for c in columns])
            for k, columns in enumerate(self.keys)
            if columns is not None
        }


SORTED_LAYOUT: Final = RowLayout(time=0, keys=())
"""The layout of the rows of a `sorted_chunk`."""


@dataclass(frozen=True, slots=True)
class Access:
    """A way to find rows of a chunk: an index, and the positions of the rows that it finds."""

    index: Index
    order: Int32s | None = None
    """The row at each position of the index; None if rows are in the order of the index."""


@dataclass(frozen=True)
class Chunk:
    """Rows in the order of their first index; never empty."""

    rows: pa.RecordBatch
    times: Int64s
    """The time of each row; in a `sorted_chunk`, what its rows are sorted by."""
    hashes: dict[int, UInt64s]
    """By number of key."""
    index: Index
    further: dict[int, Access] = field(default_factory=dict)
    """Indexes for the keys after the stream's first, by number of key."""
    until: Int64s | None = None
    """When each row leaves its ROWS window; see `kernels.rows_window`."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def first(self) -> int:
        return self.index.first if isinstance(self.index, KeyTimeIndex) else int(self.times.min())

    @property
    def last(self) -> int:
        return self.index.last if isinstance(self.index, KeyTimeIndex) else int(self.times.max())

    def access(self, key: int | None) -> Access:
        """How to find rows by one of the stream's keys, or by time alone."""
        if key is None:
            return self._by_time if isinstance(self.index, KeyTimeIndex) else self._own
        return self.further.get(key, self._own)

    @cached_property
    def _own(self) -> Access:
        return Access(self.index)

    @cached_property
    def _by_time(self) -> Access:
        order = np.argsort(self.times)
        return Access(TimeIndex(self.times[order]), order.astype(np.int32))


def make_chunk(rows: pa.RecordBatch, layout: RowLayout, kernel: Kernel) -> Chunk:
    """A chunk of these rows; there must be at least one."""
    times, hashes = layout.times(rows), layout.hashes(rows)
    if kernel is Kernel.NESTED:
        return Chunk(rows, times, hashes, NoIndex(len(times)), until=layout.untils(rows))
    keys = layout.own if kernel is Kernel.HASH else ()
    if keys:
        index: Index
        index, order = order_by_key_and_time(hashes[keys[0]], times)
    elif (times[1:] >= times[:-1]).all():  # whoever ordered them may have ordered equal times, too
        return Chunk(rows, times, hashes, TimeIndex(times), until=layout.untils(rows))
    else:
        order = np.argsort(times)
        index = TimeIndex(times[order])
    rows, times = rows.take(pa.array(order)), times[order]
    hashes = {k: values[order] for k, values in hashes.items()}
    further = {k: _further(hashes[k], times) for k in keys[1:]}
    return Chunk(rows, times, hashes, index, further, layout.untils(rows))


def sorted_chunk(rows: pa.RecordBatch) -> Chunk:
    """A chunk of rows that are no stream's: sorted by the integers of their first column."""
    sorted_by = as_int64(rows.column(0))
    return Chunk(rows, sorted_by, {}, TimeIndex(sorted_by))


def _further(hashes: UInt64s, times: Int64s) -> Access:
    index, order = order_by_key_and_time(hashes, times)
    return Access(index, order.astype(np.int32))


def keep_rows(chunk: Chunk, keep: Bools) -> Chunk:
    """The same chunk with only the rows to keep; there must be at least one."""
    places = np.flatnonzero(keep)
    times = chunk.times[places]
    return Chunk(
        chunk.rows.take(pa.array(places)),
        times,
        {k: values[places] for k, values in chunk.hashes.items()},
        _narrow(chunk.index, places, times),
        {k: _narrow_further(access, keep, times) for k, access in chunk.further.items()},
        None if chunk.until is None else chunk.until[places],
    )


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


def _narrow_further(access: Access, keep: Bools, times: Int64s) -> Access:
    assert access.order is not None
    places = np.flatnonzero(keep[access.order])
    renumbered = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    return Access(_narrow(access.index, places, times), renumbered[access.order[places]])


def merge_chunks(chunks: Sequence[Chunk], layout: RowLayout, kernel: Kernel) -> Chunk:
    """One chunk with the rows of all."""
    return make_chunk(pa.concat_batches([chunk.rows for chunk in chunks]), layout, kernel)
