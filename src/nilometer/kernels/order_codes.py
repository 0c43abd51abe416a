"""Spark's order of values as integers: NaN is the largest number, texts go by their bytes,
structs and lists by their parts, and NULL is the smallest of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s, validity
from nilometer.kernels.canonical import canonical

NULL_CODE: Final = 0
"""The code of NULL; all others are larger."""


def order_codes(column: pa.Array) -> Int64s:
    """Small integers that compare like the values of a column."""
    kind = column.type
    if pat.is_null(kind):
        return np.full(len(column), NULL_CODE, np.int64)
    if pat.is_floating(kind):
        floats = canonical(column).to_numpy(zero_copy_only=False)  # np.unique puts NaN last
        codes = np.unique(floats, return_inverse=True)[1]
    elif pat.is_struct(kind):
        codes = joint_codes([order_codes(field) for field in column.flatten()], len(column))
    elif pat.is_list(kind) or pat.is_large_list(kind) or pat.is_map(kind):
        codes = _list_codes(column)
    else:
        codes = np.asarray(pc.rank(column, tiebreaker="dense"), np.int64)
    valid = validity(column)
    return codes + 1 if valid is None else np.where(valid, codes + 1, NULL_CODE)


def sort_codes(codes: Int64s, *, descending: bool, nulls_first: bool) -> Int64s:
    """Order codes of a column, as ORDER BY sorts it."""
    beyond = int(codes.max(initial=0)) + 1
    directed = beyond - codes if descending else codes
    return np.where(codes == NULL_CODE, 0 if nulls_first else beyond, directed)


def joint_codes(parts: Sequence[Int64s], size: int) -> Int64s:
    """One code for several columns, the first one decides, then the next; dense from zero."""
    joint, bits = np.zeros(size, np.int64), 0
    for codes in parts:
        width = int(codes.max(initial=0)).bit_length()
        if bits + width > 63:
            joint = np.unique(joint, return_inverse=True)[1]
            bits = size.bit_length()
        joint = (joint << width) | codes
        bits += width
    return np.unique(joint, return_inverse=True)[1]


def _list_codes(column: pa.ListArray) -> Int64s:
    """Lists compare like words in a dictionary: item by item, and a prefix comes first."""
    offsets = np.asarray(column.offsets.to_numpy(), dtype=np.int64)
    lengths = np.diff(offsets)
    items = order_codes(column.values.slice(offsets[0], offsets[-1] - offsets[0])) + 1
    joint = np.zeros(len(column), np.int64)
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        item = np.zeros(len(column), np.int64)
        item[longer] = items[offsets[longer] - offsets[0] + place]
        joint = joint_codes([joint, item], len(column))
    return joint
