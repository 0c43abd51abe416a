"""The peaks of spectra: position, area and significance.

STEAM section 7.3: the analysis of an energy spectrum begins with the location of its peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.signal import find_peaks

from nilometer.kernels.arrays import Int64s
from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.peak_filter import PeakFilter
from nilometer.mining.resolve_peaks import near_others, resolve_peaks
from nilometer.mining.table_function import Numbers

_AT_ONCE: Final = 128
"""Spectra filtered at a time: so many of 1024 channels fit into the cache."""


@dataclass(frozen=True)
class MeasuredPeaks:
    """Peaks ordered by spectrum and channel."""

    spectrum: Int64s
    channel: Numbers
    """The centre of the peak; whole numbers are the centres of channels, from 0."""
    energy: Numbers
    area: Numbers
    """The counts in the peak above the continuum."""
    sigma: Numbers
    """The standard deviation of the area."""
    significance: Numbers
    """The area in standard deviations."""


class SpectrumPeaks:
    """Finds peaks that exceed the continuum by a number of standard deviations.

    >>> counts = [9, 9, 9, 9, 9, 9, 10, 23, 56, 84, 56, 23, 10, 9, 9, 9, 9, 9, 9]
    >>> peaks = SpectrumPeaks(EnergyScale(fwhm=2.4), significance=4).find([counts])
    >>> peaks.energy.tolist(), peaks.area.round().tolist()
    ([9.5], [197.0])
    """

    def __init__(self, scale: EnergyScale, significance: float = 4.0, most: int = 20) -> None:
        self._scale = scale
        self._least = significance
        self._most = most
        self._filter = lru_cache(maxsize=8)(lambda channels: PeakFilter(scale, channels))

    def find(
        self,
        counts: npt.ArrayLike,
        background: npt.ArrayLike | None = None,
        scale: npt.ArrayLike = 1.0,
    ) -> MeasuredPeaks:
        """The peaks of spectra, one per row, after subtracting their scaled backgrounds."""
        spectra = np.asarray(counts, np.float64)
        net, variance = spectra, spectra
        if background is not None:
            times = np.broadcast_to(np.asarray(scale, np.float64), len(spectra))[:, None]
            blank = np.broadcast_to(np.asarray(background, np.float64), spectra.shape)
            net, variance = spectra - times * blank, spectra + times**2 * blank
        return _joined(
            [
                self._find(net[begin : begin + _AT_ONCE], variance[begin : begin + _AT_ONCE], begin)
                for begin in range(0, max(len(spectra), 1), _AT_ONCE)
            ]
        )

    def _find(self, net: Numbers, variance: Numbers, first: int) -> MeasuredPeaks:
        line_filter: PeakFilter = self._filter(net.shape[1])
        areas, sigmas = line_filter.areas(net), line_filter.sigmas(variance)
        heights = np.divide(areas, sigmas, out=np.zeros_like(areas), where=sigmas > 0)
        rows, channels = self._highest(heights, line_filter.widths)
        middles = channels + _vertex(heights, rows, channels)
        response, _ = line_filter.responses(channels, middles)
        area = areas[rows, channels] / response
        near = near_others(rows, channels, line_filter.widths)
        if near.any():
            resolved = resolve_peaks(line_filter, areas, rows[near], channels[near])
            middles[near], area[near] = resolved
        sigma = sigmas[rows, channels] / response
        energy = self._scale.energy(middles)
        return MeasuredPeaks(rows + first, middles, energy, area, sigma, area / sigma)

    def _highest(self, heights: Numbers, widths: Numbers) -> tuple[Int64s, Int64s]:
        """The rows and channels of the peaks: local maxima, none within a width of a higher one."""
        # An additional column separates the end of a spectrum from the start of the next.
        fenced = np.pad(heights, ((0, 0), (0, 1)), constant_values=-np.inf)
        places, properties = find_peaks(fenced.ravel(), height=self._least)
        rows, channels = np.divmod(places, fenced.shape[1])
        keep = _without_lower(rows, channels, properties["peak_heights"], widths)
        rows, channels = rows[keep], channels[keep]
        order = np.lexsort((channels, -heights[rows, channels], rows))
        rank = np.arange(len(order)) - np.searchsorted(rows, rows)
        keep = np.sort(order[rank < self._most])
        return rows[keep], channels[keep]


def _without_lower(rows: Int64s, channels: Int64s, heights: Numbers, widths: Numbers) -> Int64s:
    """The peaks without those within one width of a higher one."""
    keep = np.arange(len(rows))
    while True:
        left, right = keep[:-1], keep[1:]
        distance = channels[right] - channels[left]
        near = (rows[left] == rows[right]) & (distance < widths[channels[left]])
        left_goes = near & (heights[left] < heights[right])
        goes = np.append(left_goes, False) | np.append(False, near & ~left_goes)
        if not goes.any():
            return keep
        keep = keep[~goes]


def _vertex(heights: Numbers, rows: Int64s, channels: Int64s) -> Numbers:
    """The offset from each peak of the vertex of the parabola through it and its neighbours."""
    before, here, after = (heights[rows, channels + step] for step in (-1, 0, 1))
    bend = before - 2 * here + after
    shift = np.divide(before - after, 2 * bend, out=np.zeros(len(rows)), where=bend < 0)
    return np.clip(shift, -0.5, 0.5)


def _joined(parts: Sequence[MeasuredPeaks]) -> MeasuredPeaks:
    names = [one.name for one in fields(MeasuredPeaks)]
    return MeasuredPeaks(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))
