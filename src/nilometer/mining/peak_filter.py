"""The filter that measures the area of a line at every channel of a spectrum.

At each channel a line of the expected width on a linear continuum is fitted by least squares to the
channels around it. The resulting area is a weighted sum of the counts; the weights sum to zero,
also over any straight line, so that the continuum cancels out. This is the second difference of
Mariscotti (Nuclear Instruments and Methods 50, 1967) in the form of a matched filter; since the
weights are known, so is the variance of the area.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.table_function import Numbers

_REACH: Final = 1.5
"""How far the fit extends to either side, in widths of the line."""
_LEAST_SIDE: Final = 3
"""Channels to each side: a line and a continuum together have three unknowns."""
_MOST_SIDE: Final = 256
"""Channels to each side: bounds memory if lines are very wide."""
_WIDTH_OF_DEVIATION: Final = 2 * np.sqrt(2 * np.log(2))
"""The full width at half maximum of a Gaussian whose standard deviation is 1."""


class PeakFilter:
    """The weights for spectra with a given number of channels.

    A line too near an end to be distinguished from the continuum has no weights: its area is 0.
    """

    def __init__(self, scale: EnergyScale, channels: int) -> None:
        self.widths = (
            scale.width(scale.energy(np.arange(channels, dtype=np.float64))) / scale.channel_width
        )
        """The widths of lines at each channel, in channels."""
        self._deviations = np.maximum(self.widths, 1e-9) / _WIDTH_OF_DEVIATION
        sides = np.ceil(_REACH * self.widths).clip(_LEAST_SIDE, _MOST_SIDE)
        widest = int(sides.max(initial=_LEAST_SIDE))
        around = np.arange(-widest, widest + 1)
        self._edges = np.arange(-widest, widest + 2) - 0.5
        places = np.arange(channels)[:, None] + around
        inside = (np.abs(around) <= sides[:, None]) & (places >= 0) & (places < channels)
        to_end = np.minimum(np.arange(channels), np.arange(channels)[::-1])
        inside &= (to_end >= np.maximum(self.widths / 2, 1.0))[:, None]
        shapes = np.diff(ndtr(self._edges / self._deviations[:, None]), axis=1)
        self._table = _fit(shapes, inside)
        rows = np.broadcast_to(np.arange(channels)[:, None], places.shape)
        weights = csr_array(
            (self._table[inside], (rows[inside], places[inside])), shape=(channels, channels)
        )
        self._weights, self._squares = weights, weights.power(2)

    def areas(self, net: Numbers) -> Numbers:
        """The area of a line at each channel of spectra, one per row."""
        return _apply(self._weights, net)

    def sigmas(self, variance: Numbers) -> Numbers:
        """The standard deviations of the areas, from the variances of the counts."""
        return np.sqrt(_apply(self._squares, variance))

    def responses(self, channels: Int64s, middles: Numbers) -> tuple[Numbers, Numbers]:
        """The areas that the weights of channels give for lines of area 1 centred elsewhere.

        Also their derivatives with respect to the centres.
        """
        deviations = self._deviations[self.inside(np.rint(middles).astype(np.int64))][:, None]
        edges = (self._edges - (middles - channels)[:, None]) / deviations
        weights = self._table[channels]
        falling = -np.exp(-(edges**2) / 2) / (deviations * np.sqrt(2 * np.pi))
        return (
            np.einsum("ij,ij->i", weights, np.diff(ndtr(edges), axis=1)),
            np.einsum("ij,ij->i", weights, np.diff(falling, axis=1)),
        )

    def inside(self, channels: Int64s) -> Int64s:
        """The nearest channels that have neighbours on both sides."""
        clipped: Int64s = np.clip(channels, 1, len(self.widths) - 2)
        return clipped


def _fit(lines: Numbers, inside: Bools) -> Numbers:
    """The least-squares weights for the areas of lines, from the channels inside."""
    around = np.broadcast_to(np.arange(lines.shape[1], dtype=np.float64), lines.shape)
    slopes = _centred(around, inside)
    rest = _centred(lines, inside)
    rest -= slopes * _ratio((slopes * rest).sum(axis=1), (slopes**2).sum(axis=1))
    return rest * _ratio(np.ones(len(rest)), (rest**2).sum(axis=1))


def _centred(values: Numbers, inside: Bools) -> Numbers:
    """Each row minus the mean of its values inside; 0 outside."""
    mean = _ratio((values * inside).sum(axis=1), inside.sum(axis=1, dtype=np.float64))
    centred: Numbers = (values - mean) * inside
    return centred


def _ratio(above: Numbers, below: Numbers) -> Numbers:
    """A column of quotients; 0 where the divisor is not positive."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)[:, None]


def _apply(weights: Any, spectra: Numbers) -> Numbers:
    filtered: Numbers = (weights @ np.ascontiguousarray(spectra.T)).T
    return filtered
