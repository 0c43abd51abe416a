"""Which subsequences may be close to a shape: by MASS, in O(n log n), without missing any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.subsequences import unbroken, within_one
from nilometer.mining.table_function import Numbers

_FEW: Final = 1 << 15
"""So many numbers are compared directly in less time than MASS needs to start."""
_AT_ONCE: Final = 1 << 11
"""Subsequences for one call of MASS: over more, running sums lose precision, and levels drift."""
_SURE: Final = 1e-5
"""From this variance on (of values within -1 and 1) running sums are precise enough to trust."""
_SLACK: Final = 1e-4
"""More than the error of a correlation by MASS: running sums of n values within -1 and 1 are off by
at most n² / 2 roundings; their differences, the moments, by 5e-10 in total."""


def z_candidates(series: Numbers, shape: Numbers, limit: float) -> Int64s:
    """Starts of unbroken subsequences whose z-normalised distance may be within a limit.

    The shape is z-normalised. Mueen et al., The fastest similarity search algorithm, 2010.
    """
    length = len(shape)
    if series.size * length <= _FEW:
        return np.flatnonzero(unbroken(series, length))
    bound = np.sqrt(limit**2 + 2 * length * _SLACK)
    starts = [
        start + np.flatnonzero(unbroken(block, length) & _may_be_close(block, shape, bound))
        for start, block in _blocks(series, length)
    ]
    return np.concatenate(starts)


def _blocks(series: Numbers, length: int) -> Iterator[tuple[int, Numbers]]:
    """Blocks that together contain each subsequence once, and where they begin."""
    count = max(_AT_ONCE, 4 * length)
    for start in range(0, len(series) - length + 1, count):
        yield start, series[start : start + count + length - 1]


def _may_be_close(block: Numbers, shape: Numbers, bound: float) -> Bools:
    values = within_one(block)
    length = len(shape)
    variances = _running_variances(values, length)
    sure = variances >= _SURE
    with np.errstate(invalid="ignore"):
        correlations = _products(values, shape) / (length * np.sqrt(np.where(sure, variances, 1.0)))
    return np.asarray(~sure | (2 * length * (1 - correlations) <= bound**2))


def _products(values: Numbers, shape: Numbers) -> Numbers:
    """The inner product of each subsequence with a shape, by Fourier transforms."""
    size = next_fast_len(len(values), real=True)
    spectrum = rfft(values, size) * rfft(shape[::-1], size)
    products: Numbers = irfft(spectrum, size)[len(shape) - 1 : len(values)]
    return products


def _running_variances(values: Numbers, length: int) -> Numbers:
    """The variance of each subsequence of a length."""
    sums, squares = (np.concatenate([[0.0], np.cumsum(values**power)]) / length for power in (1, 2))
    means = sums[length:] - sums[:-length]
    variances: Numbers = squares[length:] - squares[:-length] - means**2
    return variances
