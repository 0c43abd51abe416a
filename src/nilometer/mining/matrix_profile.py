"""The matrix profile: how far each subsequence is from the one most like it, by stumpy."""

from __future__ import annotations

import warnings

import numpy as np

from nilometer.kernels.arrays import Bools
from nilometer.mining.compiled_stumpy import one_thread
from nilometer.mining.subsequences import shaped, unbroken, within_one
from nilometer.mining.table_function import Numbers


def exclusion_zone(length: int) -> int:
    """Up to how far apart subsequences are too much the same to be compared, as in stumpy."""
    return -(-length // 4)


def matrix_profile(series: Numbers, length: int) -> Numbers:
    """The z-normalised distance of each subsequence from the nearest outside its exclusion zone.

    Infinite where there is none, and where the subsequence is flat or broken by NaN. A flat one
    is, to others, one with a correlation of 0.5. Zhu et al., Matrix Profile II, ICDM 2016.
    """
    starts = len(series) - length + 1
    if starts <= exclusion_zone(length) + 1:
        return np.full(max(0, starts), np.inf)
    compared = shaped(series, length)
    values = within_one(series)
    values[~np.isfinite(series)] = np.nan
    profile = _stump(values, length, ~compared & unbroken(series, length))
    profile[~compared] = np.inf
    return profile


def _stump(values: Numbers, length: int, flat: Bools) -> Numbers:
    with one_thread() as stumpy, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of windows hardly longer than a subsequence
        found = stumpy.stump(values, length, T_A_subseq_isconstant=flat)
    return np.asarray(found.P_, dtype=np.float64)
