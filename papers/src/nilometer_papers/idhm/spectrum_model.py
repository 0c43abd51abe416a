"""What a detector counts from a box: expected counts, counts of bursts, and single events.

The model is linear. Atoms of an element emit photons at a rate given by neutrons and cross
sections; a part of them reaches the detector; each becomes counts by the detector's response. What
a box does to the neutrons of another box, and self-absorption in thick contents, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.boxes import Box, moles, shield_moles
from nilometer_papers.idhm.detector import CENTRES, CHANNELS, DETECTORS, line_responses
from nilometer_papers.idhm.elements import ELEMENTS, LINES, Reaction
from nilometer_papers.idhm.shielding import find_shield

Spectra = npt.NDArray[np.float64]

NEUTRONS: Final = 1e9
"""Neutrons a second from the source."""
_SOURCE_TO_BOX: Final = 35.0
_BOX_TO_DETECTOR: Final = 30.0
"""In centimetres."""
_FAST: Final = NEUTRONS / (4 * np.pi * _SOURCE_TO_BOX**2)
_THERMAL: Final = 0.5 * _FAST
"""Neutrons per cm² of the box and second."""
_ATOMS_AND_BARNS: Final = 6.022e23 * 1e-24
"""Atoms per mole, times cm² per barn."""

_ENERGIES: Final = np.array([line.energy for line in LINES])
_CAPTURED: Final = np.array([line.reaction is Reaction.CAPTURE for line in LINES])
_OF_ELEMENT: Final = np.array([ELEMENTS.index(line.element) for line in LINES])
_ROOM_MOLES: Final = {"H": 60.0, "O": 25.0, "Fe": 12.0, "Al": 25.0, "Si": 25.0}
"""The walls, the belt and the source's shield, as if this much of them were where the box is."""
_ROOM_COUNTS: Final = 1500.0
_ROOM_FALLS: Final = 1.6
"""Scattered gammas per second and 100 cm², and the energy over which they fall to 1/e, in MeV."""


def line_rates(boxes: Sequence[Box]) -> npt.NDArray[np.float64]:
    """A row for each box: photons of each of LINES that leave it per second."""
    shields = [find_shield(box.shield) for box in boxes]
    inside = np.array([shield.neutrons_left() for shield in shields])[:, None]
    outward = np.array([shield.gammas_left(_ENERGIES) for shield in shields])
    moderation = np.array([box.moderation for box in boxes])
    atoms = moles(boxes)[:, _OF_ELEMENT] * inside * outward
    # All neutrons hit a shield, and its own gammas come through half of it on average.
    atoms += shield_moles(boxes)[:, _OF_ELEMENT] * np.sqrt(outward)
    photons: npt.NDArray[np.float64] = atoms * _photons_per_mole(moderation)
    return photons


def _photons_per_mole(moderation: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    flux = np.where(_CAPTURED, _THERMAL * moderation[:, None], _FAST)
    barns = np.array([line.barns for line in LINES])
    photons: npt.NDArray[np.float64] = flux * barns * _ATOMS_AND_BARNS
    return photons


def seen_by(kind: str) -> float:
    """The fraction of a box's photons that enters a detector of a kind."""
    return float(DETECTORS[kind].area / (4 * np.pi * _BOX_TO_DETECTOR**2))


@cache
def templates(kind: str) -> Spectra:
    """A row for each of ELEMENTS: expected counts a second per mole of it, without a shield."""
    photons = _photons_per_mole(np.ones(1))[0] * seen_by(kind)
    rows = np.zeros((len(ELEMENTS), CHANNELS))
    np.add.at(rows, _OF_ELEMENT, photons[:, None] * line_responses(kind))
    return rows


@cache
def background(kind: str) -> Spectra:
    """Expected counts a second without a box."""
    amounts = np.array([_ROOM_MOLES.get(element, 0.0) for element in ELEMENTS])
    falling = np.exp(-CENTRES / _ROOM_FALLS)
    scattered = _ROOM_COUNTS * DETECTORS[kind].area / 100.0 * falling / falling.sum()
    expected: Spectra = amounts @ templates(kind) + scattered
    return expected


def expected_rates(boxes: Sequence[Box], kind: str) -> Spectra:
    """A row for each box: expected counts a second in each channel, with the background."""
    of_boxes = line_rates(boxes) * seen_by(kind) @ line_responses(kind)
    room = np.array([box.room for box in boxes])[:, None]
    rates: Spectra = of_boxes + room * background(kind)
    return rates


@dataclass(frozen=True)
class Burst:
    """What a detector has seen of a box in one burst: events in time order."""

    box: int
    number: int
    live: float
    """The length of the burst in seconds."""
    times: npt.NDArray[np.int64]
    """Microseconds since it began."""
    channels: npt.NDArray[np.int64]


def burst_counts(rates: Spectra, seconds: float, seed: Sequence[int]) -> npt.NDArray[np.int64]:
    """Counts of one burst at such rates; the same for the same seed."""
    dice = np.random.default_rng(tuple(seed))
    return dice.poisson(rates * seconds)


def burst_events(box: Box, kind: str, number: int, seconds: float, seed: int) -> Burst:
    """The events of a burst of a box; the same for the same seed, box, kind and number."""
    place = list(DETECTORS).index(kind)
    dice = np.random.default_rng((seed, box.number, place, number))
    counts = dice.poisson(expected_rates([box], kind)[0] * seconds)
    channels = np.repeat(np.arange(CHANNELS), counts)
    times = np.sort(dice.integers(0, round(seconds * 1e6), len(channels)))
    return Burst(box.number, number, seconds, times, dice.permutation(channels))
