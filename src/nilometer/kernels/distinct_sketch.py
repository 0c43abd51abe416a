"""How many distinct values a column has, estimated in a few hundred bytes.

The smallest hashes of all values seen are kept. While they are few, they are counted; if there are
more, the largest one kept gives their density.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import UInt64s
from nilometer.kernels.key_hashes import key_hashes

KEPT: Final = 256
"""With this many hashes the error of the estimate is about six percent."""
_ALL: Final = float(1 << 64)


class DistinctSketch:
    """The distinct values of one column, without NULLs."""

    def __init__(self) -> None:
        self._smallest: UInt64s = np.zeros(0, np.uint64)

    def add(self, values: pa.Array) -> None:
        """Add values."""
        hashes = key_hashes([values.drop_null()])
        self._smallest = np.unique(np.concatenate([self._smallest, hashes]))[:KEPT]

    @property
    def estimate(self) -> float:
        """The number of distinct values; exact where they are few.

        >>> sketch = DistinctSketch()
        >>> sketch.add(pa.array([1, 2, 2, None, 3]))
        >>> sketch.estimate
        3.0
        """
        if len(self._smallest) < KEPT:
            return float(len(self._smallest))
        return (KEPT - 1) * _ALL / float(self._smallest[-1])
