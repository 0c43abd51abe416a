"""Rows of which several buckets hold copies, each taken over once.

A bucket drops a row as soon as it holds no partner for it, while a copy of the row in another
bucket may still have one: what counts is how often a row is held where it is held most often.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, UInt64s
from nilometer.kernels.key_hashes import hash_rows


class CopiedRows:
    """Rows of buckets, one bucket after the other."""

    def __init__(self) -> None:
        self._most: dict[int, Counter[int]] = defaultdict(Counter)
        """How often a row was held in those before, by the first bucket that has copies of it."""
        self._here: Counter[int] = Counter()
        """How often in this one."""
        self._place = -1

    def begin(self, first: int) -> None:
        """Begin with a bucket, given the first one that has copies of its rows."""
        self._end()
        self._place = first

    def _end(self) -> None:
        self._most[self._place] |= self._here
        self._here = Counter()

    def new(self, rows: pa.RecordBatch, chosen: Bools) -> Bools:
        """Which of the chosen rows of this bucket no bucket before it had."""
        places = np.flatnonzero(chosen)
        if not len(places):
            return chosen
        hashes = _hash(rows.take(pa.array(places)))
        before = self._most[self._place]
        is_new = np.empty(len(places), np.bool_)
        for number, one in enumerate(hashes.tolist()):
            is_new[number] = self._here[one] >= before[one]
            self._here[one] += 1
        found = np.zeros(len(chosen), np.bool_)
        found[places[is_new]] = True
        return found


def _hash(rows: pa.RecordBatch) -> UInt64s:
    """A hash of all that rows hold: 0.0 and -0.0 are two values here."""
    return hash_rows([_bits(column) for column in rows.columns])


def _bits(column: pa.Array) -> pa.Array:
    if pat.is_float64(column.type):
        return column.view(pa.int64())
    return column.view(pa.int32()) if pat.is_float32(column.type) else column
