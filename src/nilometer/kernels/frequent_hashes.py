"""Which hashes are frequent among many, without sorting those that are rare."""

from __future__ import annotations

from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s, UInt64s

_BITS: Final = 10
_SHIFT: Final = np.uint64(64 - _BITS)


def frequent_hashes(hashes: UInt64s, minimum: int) -> tuple[UInt64s, Int64s]:
    """The hashes that occur at least `minimum` times, ascending, and how often each does; exact.

    Hashes are counted by their first bits. One that is frequent is so in its slot, too, so only
    the rows of full slots are sorted: hardly any if all hashes are rare.
    """
    slots = (hashes >> _SHIFT).view(np.int64)
    is_full = np.bincount(slots, minlength=1 << _BITS) >= minimum
    if not is_full.any():
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    distinct, counts = np.unique(hashes[is_full[slots]], return_counts=True)
    is_frequent = counts >= minimum
    return distinct[is_frequent], counts[is_frequent]
