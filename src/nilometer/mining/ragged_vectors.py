"""Columns of arrays of numbers whose lengths may vary by row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Int64s
from nilometer.mining.table_function import Numbers
from nilometer.mining.vectors import as_matrix


def as_vectors(column: pa.Array) -> list[Numbers | None]:
    """The arrays of a column; None if NULL or empty, or if a number is NULL, NaN or infinite."""
    vectors: list[Numbers | None] = [None] * len(column)
    for rows, matrix in matrices_of(column):
        for row, vector in zip(rows, matrix, strict=True):
            vectors[row] = vector
    return vectors


def matrices_of(column: pa.Array) -> Iterator[tuple[Int64s, Numbers]]:
    """The usable, non-empty arrays of a column: a matrix for each length, with their rows."""
    lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        matrix, usable = as_matrix(column.take(pa.array(rows)), length)
        yield rows[usable], matrix if usable.all() else matrix[usable]
