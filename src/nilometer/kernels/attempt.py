"""Computations that may fail: NULL in the rows where they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arithmetic import as_type

Work: TypeAlias = Callable[[Sequence[pa.Array], int], pa.Array]


def attempt(work: Work, columns: Sequence[pa.Array], size: int, kind: pa.DataType) -> pa.Array:
    """The values of a computation; rows in which it fails are found by bisection."""
    try:
        return as_type(work(columns, size), kind)
    except UnavailableError:
        raise
    except (PredicateError, pa.ArrowInvalid):
        if size <= 1:
            return pa.nulls(size, kind)
    half = size // 2
    parts = ((0, half), (half, size - half))
    return pa.concat_arrays(
        [
            attempt(work, [column.slice(first, length) for column in columns], length, kind)
            for first, length in parts
        ]
    )
