"""Gamma detectors of several kinds: their response to a photon of some energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.elements import LINES

CHANNELS: Final = 1024
TOP: Final = 12.0
"""The channels divide the energies from 0 to this many MeV evenly."""
WIDTH: Final = TOP / CHANNELS
CENTRES: Final = (np.arange(CHANNELS, dtype=np.float64) + 0.5) * WIDTH

_ELECTRON: Final = 0.511
"""The mass of an electron, in MeV: what a photon that escapes takes with it."""


@dataclass(frozen=True)
class Detector:
    """A kind of detector. Its peaks are Gaussians as wide as a + b·√E."""

    kind: str
    width_at_zero: float
    width_per_root: float
    """a and b: the full width at half maximum in MeV, E in MeV."""
    efficiency: float
    """The fraction of the photons of 1 MeV entering it that end in the full-energy peak."""
    falls_with: float
    """The power of the energy by which that fraction decreases."""
    escapes: tuple[float, float]
    """The single and the double escape peak, relative to the full-energy peak, at high energies."""
    continuum: float
    """The Compton continuum relative to the full-energy peak, at 1 MeV; it grows like √E."""
    area: float
    """The area of its face, in cm²."""

    def full_width(self, energies: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The full width at half maximum at energies, all in MeV."""
        roots = np.sqrt(np.asarray(energies, dtype=np.float64))
        return self.width_at_zero + self.width_per_root * roots


DETECTORS: Final[Mapping[str, Detector]] = {
    detector.kind: detector
    for detector in (
        Detector("NaI", 0.0, 0.060, 0.35, 0.75, (0.6, 0.25), 1.6, 127.0),
        Detector("BGO", 0.0, 0.085, 0.50, 0.55, (0.5, 0.15), 0.9, 46.0),
        Detector("LaBr3", 0.0, 0.024, 0.32, 0.75, (0.8, 0.45), 2.0, 46.0),
        Detector("HPGe", 0.001, 0.001, 0.18, 0.85, (1.1, 1.4), 3.5, 50.0),
    )
}


@cache
def line_responses(kind: str) -> npt.NDArray[np.float64]:
    """A row of channels for each of LINES: expected counts of one photon that enters."""
    return responses(DETECTORS[kind], [line.energy for line in LINES])


def responses(detector: Detector, energies: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A row of channels for each energy: expected counts of one photon that enters."""
    left = np.stack([_deposits(detector, energy) for energy in np.asarray(energies)])
    blurred: npt.NDArray[np.float64] = left @ blur(detector)
    return blurred


def _deposits(detector: Detector, energy: float) -> npt.NDArray[np.float64]:
    """The energy deposited in the detector, before its resolution blurs it."""
    peak = detector.efficiency * energy**-detector.falls_with
    pairs = max(0.0, 1.0 - np.exp(-(energy - 2 * _ELECTRON) / 4.0))
    first, second = (ratio * pairs for ratio in detector.escapes)
    left = _at(energy) + first * _at(energy - _ELECTRON) + second * _at(energy - 2 * _ELECTRON)
    left += detector.continuum * np.sqrt(energy) * _compton(energy)
    whole: npt.NDArray[np.float64] = peak * left
    return whole


def _at(energy: float) -> npt.NDArray[np.float64]:
    """One count at an energy, shared by the two channels with the nearest centres."""
    left = np.zeros(CHANNELS)
    place = energy / WIDTH - 0.5
    below = int(np.floor(place))
    for channel, share in ((below, below + 1 - place), (below + 1, place - below)):
        if 0 <= channel < CHANNELS:
            left[channel] += share
    return left


def _compton(energy: float) -> npt.NDArray[np.float64]:
    """One count, distributed as Klein and Nishina distribute the energy of scattered electrons."""
    ratio = energy / _ELECTRON
    edge = energy * 2 * ratio / (1 + 2 * ratio)
    share = np.minimum(CENTRES, edge) / energy
    rest = share / (1 - share)
    shape = 2 + (rest / ratio) ** 2 + rest * (share - 2 / ratio)
    shape[edge < CENTRES] = 0.0
    spread: npt.NDArray[np.float64] = shape / shape.sum()
    return spread


@cache
def blur(detector: Detector) -> npt.NDArray[np.float64]:
    """A row for each channel: over which channels its resolution spreads a count."""
    from scipy.special import ndtr  # noqa: PLC0415  an extra

    sigmas = detector.full_width(CENTRES) / np.sqrt(8 * np.log(2))
    edges = np.arange(CHANNELS + 1) * WIDTH
    below = ndtr((edges[None, :] - CENTRES[:, None]) / sigmas[:, None])
    spread: npt.NDArray[np.float64] = np.diff(below, axis=1)
    return spread
