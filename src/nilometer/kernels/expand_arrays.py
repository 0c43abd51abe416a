"""Rows for the items of arrays: each row is repeated once per item, at least once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

POSITION = pa.int32()
"""The type of the number of an item, which counts from 0, as Spark counts."""


def item_types(kind: pa.DataType) -> tuple[pa.DataType, ...] | None:
    """The types of the items of an array, or of the keys and values of a map.

    >>> item_types(pa.list_(pa.string())), item_types(pa.int64())
    ((DataType(string),), None)
    """
    if pat.is_map(kind):
        return kind.key_type, kind.item_type
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        return (kind.value_type,)
    return None


def expand_arrays(columns: Sequence[pa.Array], arrays: pa.Array) -> list[pa.Array]:
    """The columns, each row once for every item, followed by the item's number and the item.

    A row whose array is empty or NULL appears once, without an item.

    >>> [c.to_pylist() for c in expand_arrays([pa.array("ab")], pa.array([[5, 6], []]))]
    [['a', 'a', 'b'], [0, 1, None], [5, 6, None]]
    """
    if pat.is_fixed_size_list(arrays.type):
        arrays = arrays.cast(pa.list_(arrays.type.value_type))
    is_map = pat.is_map(arrays.type)
    lengths = pc.fill_null(_lengths(arrays), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.repeat(np.arange(len(arrays)), np.maximum(lengths, 1))
    starts = np.cumsum(np.maximum(lengths, 1)) - np.maximum(lengths, 1)
    numbers = np.arange(len(rows)) - starts[rows]
    is_empty = lengths[rows] == 0
    inside = arrays.offsets.to_numpy()[:-1].astype(np.int64)[rows] + numbers
    places = pa.array(inside, mask=is_empty)
    items = [arrays.keys, arrays.items] if is_map else [arrays.values]
    taken = pa.array(rows)
    return [
        *(column.take(taken) for column in columns),
        pa.array(numbers, POSITION, mask=is_empty),
        *(item.take(places) for item in items),
    ]


def _lengths(arrays: pa.Array) -> pa.Array:
    if not pat.is_map(arrays.type):
        return pc.list_value_length(arrays)
    offsets = arrays.offsets.to_numpy().astype(np.int64)
    return pa.array(np.diff(offsets), mask=~np.asarray(arrays.is_valid()))
