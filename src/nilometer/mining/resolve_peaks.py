"""The areas and centres of peaks so close that each is measured with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.peak_filter import PeakFilter
from nilometer.mining.table_function import Numbers

_NEAR: Final = 2.6
"""Peaks farther apart, in widths, change each other's areas by less than a hundredth."""
_SEEN: Final = 4.0
"""Peaks farther apart, in widths, do not affect each other at all."""
_ROUNDS: Final = 4
_DAMPING: Final = 1e-9
"""Keeps equations solvable that do not depend on the centre: a line within one channel."""


def near_others(rows: Int64s, channels: Int64s, widths: Numbers) -> Bools:
    """Which peaks, ordered by row and channel, have another one nearby."""
    apart = np.diff(channels) > _NEAR * widths[channels[1:]]
    near = (np.diff(rows) == 0) & ~apart
    is_near: Bools = np.append(near, False) | np.append(False, near)
    return is_near


@dataclass(frozen=True)
class _Pairs:
    """Pairs of peaks in a spectrum that affect each other, and their positions in its equations."""

    one: Int64s
    other: Int64s
    spectrum: Int64s
    """The spectrum of each peak, counting only spectra with peaks."""
    rank: Int64s
    """The index of each peak within its spectrum."""

    @staticmethod
    def of(rows: Int64s, channels: Int64s, widths: Numbers) -> _Pairs:
        _, first, spectrum, counts = np.unique(
            rows, return_index=True, return_inverse=True, return_counts=True
        )
        one = np.repeat(np.arange(len(rows)), counts[spectrum])
        begins = np.cumsum(counts[spectrum]) - counts[spectrum]
        other = np.arange(len(one)) - begins[one] + first[spectrum[one]]
        seen = np.abs(channels[one] - channels[other]) <= _SEEN * widths[channels[one]]
        rank = np.arange(len(rows)) - first[spectrum]
        return _Pairs(one[seen], other[seen], spectrum, rank)


def resolve_peaks(
    line_filter: PeakFilter, measured: Numbers, rows: Int64s, channels: Int64s
) -> tuple[Numbers, Numbers]:
    """The centres and areas of peaks, given by their rows and channels, in order.

    What the filter measures at a channel is a sum over the peaks of the spectrum: their areas times
    known responses. The measured areas and slopes at each peak give as many equations as there are
    areas and centres; they are solved by the Gauss-Newton method.
    """
    pairs = _Pairs.of(rows, channels, line_filter.widths)
    widths = line_filter.widths[channels]
    middles, areas = channels.astype(np.float64), np.zeros(len(rows))
    for _ in range(_ROUNDS):
        places = line_filter.inside(np.rint(middles).astype(np.int64))
        areas, moments = _solve(line_filter, pairs, measured, rows, places, middles)
        shifts = np.divide(moments, areas, out=np.zeros(len(rows)), where=areas > 0)
        moved = middles + np.clip(shifts, -widths / 8, widths / 8)
        middles = np.clip(moved, channels - widths / 2, channels + widths / 2)
    return middles, areas


def _solve(
    line_filter: PeakFilter,
    pairs: _Pairs,
    measured: Numbers,
    rows: Int64s,
    places: Int64s,
    middles: Numbers,
) -> tuple[Numbers, Numbers]:
    """The areas, and the areas times the shifts of the centres."""
    count, size = int(pairs.spectrum[-1]) + 1, int(pairs.rank.max()) + 1
    equations = np.zeros((count, 2, size, 2, size))
    sums = np.zeros((count, 2, size))
    at = [
        line_filter.responses(places[pairs.one] + step, middles[pairs.other]) for step in (-1, 0, 1)
    ]
    spectrum, one, other = pairs.spectrum[pairs.one], pairs.rank[pairs.one], pairs.rank[pairs.other]
    for unknown, (before, here, after) in enumerate(zip(*at, strict=True)):
        equations[spectrum, 0, one, unknown, other] = here
        equations[spectrum, 1, one, unknown, other] = after - before
    sums[pairs.spectrum, 0, pairs.rank] = measured[rows, places]
    slopes = measured[rows, places + 1] - measured[rows, places - 1]
    sums[pairs.spectrum, 1, pairs.rank] = slopes
    square = equations.reshape(count, 2 * size, 2 * size)
    turned = square.transpose(0, 2, 1)
    damped = turned @ square + _DAMPING * np.eye(2 * size)
    solved = np.linalg.solve(damped, turned @ sums.reshape(count, 2 * size, 1))
    solutions = solved.reshape(count, 2, size)
    return solutions[pairs.spectrum, 0, pairs.rank], solutions[pairs.spectrum, 1, pairs.rank]
