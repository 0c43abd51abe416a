"""Columns of numbers, and of arrays of numbers, as numpy arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Bools
from nilometer.mining.table_function import Numbers


def as_numbers(column: pa.Array) -> Numbers:
    """The values of a column of numbers; NULL is NaN."""
    numbers: Numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def as_matrix(column: pa.Array, length: int | None = None) -> tuple[Numbers, Bools]:
    """The arrays of a column as the rows of a matrix, and which of them are usable.

    Usable are those of the given length (by default that of the first that is not NULL) without
    NULL, NaN and infinity; the others become rows of zeros.
    """
    lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
    if length is None:
        known = lengths[lengths >= 0]
        length = int(known[0]) if len(known) else 0
    usable: Bools = lengths == length
    matrix = np.zeros((len(column), length))
    values = as_numbers(column.filter(pa.array(usable)).flatten())
    matrix[usable] = values.reshape(np.count_nonzero(usable), length)
    finite = np.isfinite(matrix).all(axis=1)
    matrix[~finite] = 0.0
    return matrix, usable & finite
