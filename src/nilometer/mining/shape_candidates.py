"""Which subsequences may be close to a shape: by MASS, in O(n log n), and never one too few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.compiled_stumpy import one_thread
from nilometer.mining.subsequences import unbroken, within_one
from nilometer.mining.table_function import Numbers

_FEW: Final = 1 << 15
"""So many numbers are compared directly in less time than MASS takes to begin."""
_AT_ONCE: Final = 1 << 11
"""Subsequences for one call of MASS: over more, running sums are less exact, and levels drift."""
_SURE: Final = 1e-5
"""From this variance on (of values within -1 and 1) running sums are exact enough to trust."""
_SLACK: Final = 1e-4
"""More than a correlation of MASS can be wrong then: running sums of n values within -1 and 1 are
wrong by n² / 2 roundings at most, their differences, the moments, by 5e-10 in all."""


def z_candidates(series: Numbers, shape: Numbers, limit: float) -> Int64s:
    """Starts of unbroken subsequences whose z-normalised distance may be within a limit.

    The shape is z-normalised. Mueen et al., The fastest similarity search algorithm, 2010.
    """
    length = len(shape)
    if series.size * length <= _FEW:
        return np.flatnonzero(unbroken(series, length))
    bound = np.sqrt(limit**2 + 2 * length * _SLACK)
    found = [
        start + np.flatnonzero(unbroken(block, length) & _may_be_close(block, shape, bound))
        for start, block in _blocks(series, length)
    ]
    return np.concatenate(found)


def plain_candidates(series: Numbers, shape: Numbers, limit: float) -> Int64s:
    """Starts of unbroken subsequences whose Euclidean distance may be within a limit."""
    length = len(shape)
    if series.size * length <= _FEW:
        return np.flatnonzero(unbroken(series, length))
    bound = limit * (1 + 1e-9)
    with one_thread() as stumpy:
        found = [
            start + np.flatnonzero(stumpy.mass(shape, block, normalize=False) <= bound)
            for start, block in _blocks(series, length)
        ]
    return np.concatenate(found)


def _blocks(series: Numbers, length: int) -> Iterator[tuple[int, Numbers]]:
    """Pieces that hold all subsequences between them, each once, and where they begin."""
    count = max(_AT_ONCE, 4 * length)
    for start in range(0, len(series) - length + 1, count):
        yield start, series[start : start + count + length - 1]


def _may_be_close(block: Numbers, shape: Numbers, bound: float) -> Bools:
    values = within_one(block)
    length = len(shape)
    means, variances = _running_moments(values, length)
    sure = variances >= _SURE
    never = np.zeros(len(means), dtype=np.bool_)
    with one_thread() as stumpy:
        distances = stumpy.mass(
            shape,
            values,
            M_T=means,
            Σ_T=np.sqrt(np.where(sure, variances, 1.0)),
            T_subseq_isconstant=never,
            Q_subseq_isconstant=never[:1],
        )
    return np.asarray(~sure | (distances <= bound))


def _running_moments(values: Numbers, length: int) -> tuple[Numbers, Numbers]:
    """The mean and the variance of each subsequence of a length."""
    sums, squares = (np.concatenate([[0.0], np.cumsum(values**power)]) / length for power in (1, 2))
    means = sums[length:] - sums[:-length]
    return means, squares[length:] - squares[:-length] - means**2
