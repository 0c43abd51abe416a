"""Rows of which several buckets hold copies, each taken over once.

A bucket drops a row as soon as it holds no partner for it, while a copy of the row in another
bucket may still have one: what counts is how often a row is held where it is held most often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s, UInt64s
from nilometer.kernels.key_hashes import hash_rows


class CopiedRows:
    """Rows of buckets, one bucket after the other."""

    def __init__(self) -> None:
        self._most: dict[int, _Counts] = {}
        """How often rows are held in those before, by the first bucket that has copies of them,"""
        self._here = _Counts.none()
        """and in this one."""
        self._first = -1

    def begin(self, first: int) -> None:
        """Begin with a bucket, given the first one that has copies of its rows."""
        self._most[self._first] = self._before.most(self._here)
        self._here, self._first = _Counts.none(), first

    @property
    def _before(self) -> _Counts:
        return self._most.get(self._first, _Counts.none())

    def new(self, rows: pa.RecordBatch, chosen: Bools) -> Bools:
        """Which of the chosen rows of this bucket no bucket before it had."""
        places = np.flatnonzero(chosen)
        if not len(places):
            return chosen
        hashes = _hash(rows.take(pa.array(places)))
        known, group, times = np.unique(hashes, return_inverse=True, return_counts=True)
        order = np.argsort(group, kind="stable")
        ranks = np.empty(len(hashes), np.int64)
        ranks[order] = np.arange(len(hashes)) - np.repeat(np.cumsum(times) - times, times)
        is_new = ranks >= (self._before.of(known) - self._here.of(known))[group]
        self._here = self._here.plus(_Counts(known, times))
        result = np.zeros(len(chosen), np.bool_)
        result[places[is_new]] = True
        return result


@dataclass(frozen=True)
class _Counts:
    """How often each of some hashes occurs."""

    hashes: UInt64s
    """In order, each once."""
    times: Int64s

    @classmethod
    def none(cls) -> _Counts:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def of(self, hashes: UInt64s) -> Int64s:
        """How often these occur."""
        if not len(self.hashes):
            return np.zeros(len(hashes), np.int64)
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[places] == hashes, self.times[places], 0)

    def plus(self, other: _Counts) -> _Counts:
        both = self._with(other)
        return _Counts(both, self.of(both) + other.of(both))

    def most(self, other: _Counts) -> _Counts:
        both = self._with(other)
        return _Counts(both, np.maximum(self.of(both), other.of(both)))

    def _with(self, other: _Counts) -> UInt64s:
        both = np.sort(np.concatenate([self.hashes, other.hashes]))
        merged: UInt64s = both[np.diff(both, prepend=~both[:1]) != 0]
        return merged


def _hash(rows: pa.RecordBatch) -> UInt64s:
    """A hash of all that rows hold: 0.0 and -0.0 are two values here."""
    return hash_rows([_bits(column) for column in rows.columns])


def _bits(column: pa.Array) -> pa.Array:
    if pat.is_float64(column.type):
        return column.view(pa.int64())
    return column.view(pa.int32()) if pat.is_float32(column.type) else column
