"""Which bucket a row goes to, so that rows that may join meet, and no result is found twice.

Buckets form a grid (Afrati and Ullman's shares). It has a dimension per key: a row has its place
in those of its stream's keys, by a hash, and is copied along the others, so every result is found
in exactly one bucket. Without keys it has a dimension per stream: a row has its place in the
dimension of its own stream and is copied along all others, so every combination of rows meets in
exactly one bucket, and every bucket does its share of the work, however short a micro-batch is.

Where one key has most of the rows, a join by keys gets one more dimension, of parts: the rows of
one stream are dealt out over it by a hash of all their columns, and those of others are copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.chunk import StreamKeys
from nilometer.kernels.key_hashes import hash_rows, key_hashes
from nilometer.kernels.rows_window import RowsWindow

MOST_BUCKETS: Final = 1_024
"""The most that a user may ask for: each costs something in every micro-batch."""
_MOST_DIMENSIONS: Final = 4
LOW_HALF: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Routing:
    """A grid of buckets, and for each stream the columns that give its place in each dimension.

    A stream with None in a dimension is copied along it.
    """

    shares: tuple[int, ...]
    places: tuple[tuple[tuple[int, ...] | None, ...], ...]
    with_nulls: bool = False
    """Whether NULL is a value like any other: rows that have it in the same columns meet."""

    @property
    def buckets(self) -> int:
        return prod(self.shares)

    def copies(self, stream: int) -> int:
        """How many buckets hold each row of a stream."""
        own = zip(self.shares, self.places[stream], strict=True)
        return prod(share for share, columns in own if columns is None)

    def split(self, rows: pa.RecordBatch, stream: int) -> list[pa.RecordBatch]:
        """The rows of a stream for each bucket."""
        home = np.zeros(len(rows), dtype=np.int64)
        spread, copied = 1, []
        stride = self.buckets
        for share, columns in zip(self.shares, self.places[stream], strict=True):
            stride //= share
            if columns is None:
                copied.append([coordinate * stride for coordinate in range(share)])
            elif share > 1:
                home += self._coordinates(rows, columns, share) * stride
                spread *= share
        parts: list[pa.RecordBatch] = [rows.slice(0, 0)] * self.buckets
        for place, part in _group(rows, home, spread):
            for steps in product(*copied):
                parts[place + sum(steps)] = part
        return parts

    def belong(self, rows: pa.RecordBatch, stream: int, bucket: int) -> Bools:
        """Which rows of a stream come to a bucket."""
        belongs = np.ones(len(rows), np.bool_)
        stride = self.buckets
        for share, columns in zip(self.shares, self.places[stream], strict=True):
            stride //= share
            if columns is not None and share > 1:
                belongs &= self._coordinates(rows, columns, share) == bucket // stride % share
        return belongs

    def first_copy(self, bucket: int, stream: int) -> int:
        """The first of the buckets that get the same rows of a stream as this one."""
        first, stride = bucket, self.buckets
        for share, columns in zip(self.shares, self.places[stream], strict=True):
            stride //= share
            if columns is None:
                first -= bucket // stride % share * stride
        return first

    def _coordinates(self, rows: pa.RecordBatch, columns: tuple[int, ...], share: int) -> Int64s:
        values = [rows.column(c) for c in columns]
        hashes = hash_rows(values) if self.with_nulls else key_hashes(values)
        return ((hashes & LOW_HALF) % np.uint64(share)).view(np.int64)


def route_by_keys(keys: Sequence[StreamKeys], buckets: int) -> Routing:
    """Route streams by their keys (at least one in the query), with as few copies as possible."""

    def copies(shares: tuple[int, ...]) -> int:
        routing = Routing(shares, tuple(keys))
        return sum(routing.copies(stream) for stream in range(len(keys)))

    factorings = _factorings(buckets, len(keys[0]))
    return Routing(min(factorings, key=lambda s: (copies(s), s[::-1])), tuple(keys))


def route_in_parts(
    keys: Sequence[StreamKeys], buckets: int, parts: int, stream: int, columns: tuple[int, ...]
) -> Routing:
    """Route by keys, with the rows of a key in so many buckets: a divisor of their number.

    The rows of one stream are dealt out to the parts by these columns, all others are copied.
    """
    by_keys = route_by_keys(keys, buckets // parts)
    places = tuple(
        (*own, columns if number == stream else None) for number, own in enumerate(by_keys.places)
    )
    return Routing((*by_keys.shares, parts), places)


@dataclass(frozen=True, slots=True)
class RowsRouting:
    """How streams are routed if some have ROWS windows, and why."""

    routing: Routing
    key: int | None
    """The key by which all streams are split; None: one bucket does all the work."""
    undivided: tuple[int, ...]
    """The streams whose ROWS windows cannot be split by any key that all streams have."""


def route_with_rows(
    keys: Sequence[StreamKeys], rows: Sequence[RowsWindow | None], buckets: int
) -> RowsRouting:
    """Route by one key, if all streams have it and no ROWS partition spans two of its values.

    Otherwise a window would be split: everything goes to one bucket.
    """
    common = [k for k, columns in enumerate(zip(*keys, strict=True)) if None not in columns]
    windows = [(i, window) for i, window in enumerate(rows) if window is not None]

    def divides(k: int, stream: int, window: RowsWindow) -> bool:
        return set(keys[stream][k] or ()) <= set(window.partition)

    for k in common:
        if all(divides(k, *one) for one in windows):
            routing = Routing((buckets,), tuple((columns[k],) for columns in keys))
            return RowsRouting(routing, k, ())
    undivided = tuple(i for i, w in windows if not any(divides(k, i, w) for k in common))
    return RowsRouting(Routing((1,), ((None,),) * len(keys)), None, undivided)


def route_without_key(columns: tuple[tuple[int, ...], ...], buckets: int) -> Routing:
    """Route streams without a common key by some columns of each, with the fewest copies."""
    streams = len(columns)
    shares = min(
        _factorings(buckets, streams), key=lambda s: (sum(buckets // x for x in s), s[::-1])
    )
    places = tuple(
        tuple(columns[i] if d == i else None for d in range(streams)) for i in range(streams)
    )
    return Routing(shares, places)


def _factorings(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All factorings of n into this many factors; for many factors, a few good ones."""
    if parts <= _MOST_DIMENSIONS:
        yield from _all_factorings(n, parts)
        return
    for first in range(parts - _MOST_DIMENSIONS + 1):
        rest = parts - _MOST_DIMENSIONS - first
        for some in _all_factorings(n, _MOST_DIMENSIONS):
            yield (*(1,) * first, *some, *(1,) * rest)


def _all_factorings(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (n,)
        return
    for share in range(1, n + 1):
        if n % share == 0:
            for rest in _all_factorings(n // share, parts - 1):
                yield (share, *rest)


def _group(rows: pa.RecordBatch, home: Int64s, spread: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each bucket that has any."""
    if spread == 1:
        if len(rows):
            yield 0, rows
        return
    order = np.argsort(home.astype(np.uint16) if spread <= 1 << 16 else home, kind="stable")
    ordered = home[order]
    edges = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    for first, last in pairwise(edges):
        yield int(ordered[first]), rows.take(pa.array(order[first:last]))
