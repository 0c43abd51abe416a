"""Spark's equality of two columns, row by row: 0.0 = -0.0, NaN = NaN; inside structs and lists
two NULLs are equal as well."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s, as_bools


def equal_rows(left: pa.Array, right: pa.Array) -> Bools:
    """Whether left[r] and right[r] are the same value, two NULLs counting as the same."""
    kind = left.type
    if pat.is_struct(kind):
        same = np.ones(len(left), dtype=np.bool_)
        for a, b in zip(left.flatten(), right.flatten(), strict=True):
            same &= equal_rows(a, b)
    elif pat.is_list(kind) or pat.is_large_list(kind):
        same = _equal_lists(left, right)
    elif pat.is_null(kind):
        return np.ones(len(left), dtype=np.bool_)
    else:
        same = as_bools(pc.equal(left, right))
        if pat.is_floating(kind):
            same |= as_bools(pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return _where_null(left, right, same)


def _where_null(left: pa.Array, right: pa.Array, same: Bools) -> Bools:
    if left.null_count == 0 and right.null_count == 0:
        return same
    no_left, no_right = as_bools(left.is_null()), as_bools(right.is_null())
    result: Bools = np.where(no_left | no_right, no_left & no_right, same)
    return result


def _equal_lists(left: pa.ListArray, right: pa.ListArray) -> Bools:
    starts, lengths = _extents(left)
    other_starts, other_lengths = _extents(right)
    same: Bools = lengths == other_lengths
    rows = np.flatnonzero(same & (lengths > 0))
    owner = np.repeat(rows, lengths[rows])
    step = np.arange(len(owner)) - np.repeat(
        np.cumsum(lengths[rows]) - lengths[rows], lengths[rows]
    )
    items = equal_rows(
        left.values.take(pa.array(starts[owner] + step)),
        right.values.take(pa.array(other_starts[owner] + step)),
    )
    same[owner[~items]] = False
    return same


def _extents(column: pa.ListArray) -> tuple[Int64s, Int64s]:
    offsets = np.asarray(column.offsets.to_numpy(), dtype=np.int64)
    return offsets[:-1], np.diff(offsets)
