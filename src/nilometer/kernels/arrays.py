"""Names for the numpy arrays that kernels pass around, and conversions from Arrow."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Int32s: TypeAlias = npt.NDArray[np.int32]
Float64s: TypeAlias = npt.NDArray[np.float64]


def as_int64(column: pa.Array) -> Int64s:
    """The values of an eight-byte Arrow column as integers, without copying; NULLs read as junk."""
    values = np.frombuffer(column.buffers()[1], dtype=np.int64)
    return values[column.offset : column.offset + len(column)]


def validity(column: pa.Array) -> Bools | None:
    """Which values of the column are not NULL; None if no value is NULL."""
    if column.null_count == 0:
        return None
    valid: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in a type, unchanged if it has that type; floating numbers may be rounded."""
    if column.type == kind:
        return column
    return as_floating(column, kind) if pat.is_floating(kind) else column.cast(kind)


def as_floating(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The floating numbers nearest to those of a column.

    Arrow multiplies decimals by a power of ten that is not exact: it turns 119.1 into
    119.10000000000001. Texts are read correctly.
    """
    exact = column.cast(pa.string()) if pat.is_decimal(column.type) else column
    return exact.cast(kind, safe=False)


def changes(values: Int64s) -> Bools:
    """The positions where a value differs from the one before it, including the first."""
    changed = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def as_bools(column: pa.Array) -> Bools:
    """The values of a boolean column; NULL is false."""
    filled = column.fill_null(False) if column.null_count else column
    bools: Bools = filled.to_numpy(zero_copy_only=False)
    return bools
