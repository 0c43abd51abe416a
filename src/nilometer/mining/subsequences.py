"""Distances of subsequences by definition: each depends only on its own values.

Fast methods for all distances of a series at once (FFT, running sums) round differently when the
series is split differently. So they only select candidates; what is reported comes from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.table_function import Numbers

SHORTEST: Final = 3
"""Two points have one shape only: up or down."""
CLOSE: Final = 0.9
"""The default correlation from which two shapes are considered alike."""
FLAT: Final = 1e-5
"""The height, relative to its series, up to which a subsequence counts as flat."""
_AT_ONCE: Final = 1 << 18

Measure: TypeAlias = Callable[[Numbers, Numbers], Numbers]
"""Computes the distances of subsequences, the rows of a matrix, from a shape."""


def close_distance(length: int) -> float:
    """The z-normalised distance of two subsequences whose correlation is CLOSE.

    >>> close_distance(20)
    2.0
    """
    return float(np.sqrt(round(2 * length * (1 - CLOSE), 9)))


def z_normalized(values: Numbers) -> Numbers:
    """The values with mean 0 and standard deviation 1.

    >>> z_normalized(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    centred = values - values.mean()
    scaled: Numbers = centred / np.sqrt(np.square(centred).mean())
    return scaled


def z_distances(rows: Numbers, shape: Numbers) -> Numbers:
    """Euclidean distances of rows from a shape, all z-normalised; infinite where a row is flat."""
    with np.errstate(all="ignore"):  # an overflow is not a match
        centred = rows - rows.mean(axis=1, keepdims=True)
        deviations = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
        apart: Numbers = np.sqrt(np.square(centred / deviations - shape).sum(axis=1))
    apart[(rows.max(axis=1) == rows.min(axis=1)) | ~np.isfinite(apart)] = np.inf
    return apart


def plain_distances(rows: Numbers, shape: Numbers) -> Numbers:
    """Euclidean distances of rows from a shape, not normalised."""
    with np.errstate(over="ignore"):
        apart: Numbers = np.sqrt(np.square(rows - shape).sum(axis=1))
    return apart


def distances_at(series: Numbers, starts: Int64s, shape: Numbers, measure: Measure) -> Numbers:
    """The distances from a shape of the subsequences of a series that start at these positions."""
    windows = sliding_window_view(series, len(shape))
    distances = np.empty(len(starts))
    step = max(1, _AT_ONCE // len(shape))
    for at in range(0, len(starts), step):
        # Sums along contiguous rows are added in the same order for any number of rows.
        rows = np.ascontiguousarray(windows[starts[at : at + step]])
        distances[at : at + step] = measure(rows, shape)
    return distances


def unbroken(series: Numbers, length: int) -> Bools:
    """Whether all values are finite, for each subsequence of a length."""
    broken = np.concatenate([[0], np.cumsum(~np.isfinite(series))])
    return np.asarray(broken[length:] == broken[:-length])


def shaped(series: Numbers, length: int) -> Bools:
    """Whether each subsequence of a length is unbroken, and not flat compared with the series.

    Flat means at most FLAT times as high as the series: its shape is lost in rounding.
    """
    windows = sliding_window_view(series, length)
    with np.errstate(invalid="ignore", over="ignore"):
        heights = windows.max(axis=1) - windows.min(axis=1)
    finite = series[np.isfinite(series)]
    if len(finite) == 0:
        return np.zeros(len(windows), dtype=np.bool_)
    lowest, highest = finite.min() * FLAT, finite.max() * FLAT
    return np.asarray(unbroken(series, length) & (heights > highest - lowest))


def within_one(block: Numbers) -> Numbers:
    """The values centred on 0 and scaled to within -1 and 1; 0 for those not finite."""
    values = np.where(np.isfinite(block), block, 0.0)
    values = np.ldexp(values, -1 - int(np.frexp(np.abs(values).max())[1]))
    values -= values.mean()
    largest = np.abs(values).max()
    return np.asarray(values / largest if largest > 0 else values)
