"""Values as integers of the same order."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.key_hashes import is_exact

_SIZE_BITS: Final = np.int64((1 << 63) - 1)


def has_order_keys(kind: pa.DataType) -> bool:
    """Whether a type has order keys: its values have at most eight bytes."""
    return is_exact([kind])


def order_keys(column: pa.Array) -> Int64s:
    """Integers in the order of the values, none of them NULL; NaN is the largest."""
    kind = column.type
    if pat.is_floating(kind):
        bits = canonical(column.cast(pa.float64())).to_numpy().view(np.int64)
        ordered: Int64s = bits ^ ((bits >> 63) & _SIZE_BITS)
        return ordered
    if pat.is_decimal(kind):
        words = np.frombuffer(column.buffers()[1], np.int64)[::2]
        return words[column.offset : column.offset + len(column)].copy()
    if pat.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pat.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    keys: Int64s = column.cast(pa.int64()).to_numpy()
    return keys


def values_of_keys(keys: Int64s, kind: pa.DataType, valid: Bools) -> pa.Array:
    """The values of such integers, NULL where they are not valid."""
    missing = None if valid.all() else ~valid
    if pat.is_floating(kind):
        values = (keys ^ ((keys >> 63) & _SIZE_BITS)).view(np.float64)
        return pa.array(values, mask=missing).cast(kind, safe=False)
    if pat.is_decimal(kind):
        words = np.stack([keys, keys >> 63], axis=1)
        decimals = pa.Array.from_buffers(kind, len(keys), [None, pa.py_buffer(words)])
        return decimals if missing is None else pc.if_else(pa.array(valid), decimals, None)
    keys = np.where(valid, keys, 0)
    if pat.is_temporal(kind):
        width = np.int64 if kind.bit_width == 64 else np.int32
        plain = pa.array(keys.astype(width), mask=missing)
        return plain.view(kind)
    return pa.array(keys, mask=missing).cast(kind)
