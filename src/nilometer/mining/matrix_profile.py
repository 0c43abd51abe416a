"""The matrix profile: the distance of each subsequence from its nearest neighbour."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from threadpoolctl import threadpool_limits

from nilometer.kernels.arrays import Int64s
from nilometer.mining.subsequences import shaped, unbroken, within_one
from nilometer.mining.table_function import Numbers

_AT_ONCE: Final = 1024
"""So many subsequences are compared with as many others in one matrix product."""
_WITH_FLAT: Final = 0.5
"""The correlation assumed between a flat subsequence and any other."""


def exclusion_zone(length: int) -> int:
    """The distance in rows within which subsequences overlap too much to compare, as in stumpy."""
    return -(-length // 4)


def matrix_profile(series: Numbers, length: int) -> Numbers:
    """The z-normalised distance of each subsequence from the nearest outside its exclusion zone.

    Infinite where there is none, and where the subsequence is flat or contains NaN. To others, a
    flat one has a correlation of 0.5. Zhu et al., Matrix Profile II, ICDM 2016.

    Each correlation is computed from the values of its two subsequences, so none loses precision to
    what lies between: n² m / 2 multiplications for n subsequences of m values.
    """
    starts = len(series) - length + 1
    profile = np.full(max(0, starts), np.inf)
    zone = exclusion_zone(length)
    if starts <= zone + 1:
        return profile
    compared = shaped(series, length)
    flat = np.flatnonzero(~compared & unbroken(series, length))
    places = np.flatnonzero(compared)
    with threadpool_limits(1, user_api="blas"):  # all keys and queries share the cores
        best = _best_correlations(within_one(series), places, length, zone)
    if len(flat):
        beyond = (places - flat[0] > zone) | (flat[-1] - places > zone)
        best[beyond] = np.maximum(best[beyond], _WITH_FLAT)
    profile[places] = np.sqrt(2 * length * (1 - np.minimum(best, 1.0)))
    return profile


def _best_correlations(values: Numbers, places: Int64s, length: int, zone: int) -> Numbers:
    """For each subsequence at these starts, the best with any other outside its exclusion zone."""
    best = np.full(len(places), -np.inf)
    for first in range(0, len(places), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        left = _unit_vectors(values, places[rows], length)
        for second in range(first, len(places), _AT_ONCE):
            columns = slice(second, second + _AT_ONCE)
            correlations = left @ _unit_vectors(values, places[columns], length).T
            if places[second] - places[rows][-1] <= zone:
                near = np.abs(places[rows, None] - places[None, columns]) <= zone
                correlations[near] = -np.inf
            best[rows] = np.maximum(best[rows], correlations.max(axis=1))
            best[columns] = np.maximum(best[columns], correlations.max(axis=0))
    return best


def _unit_vectors(values: Numbers, places: Int64s, length: int) -> Numbers:
    """The subsequences with mean 0 and norm 1: their products are correlations."""
    rows = sliding_window_view(values, length)[places]
    rows -= rows.mean(axis=1, keepdims=True)
    unit: Numbers = rows / np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return unit
