"""Motifs and discords: what repeats in a window, and what is unlike everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from nilometer.mining.matrix_profile import exclusion_zone, matrix_profile
from nilometer.mining.subsequences import (
    SHORTEST,
    close_distance,
    distances_at,
    shaped,
    z_distances,
    z_normalized,
)
from nilometer.mining.table_function import MiningError, Numbers

_SAME: Final = 1e-9
"""Correlations that differ by less are equal except for rounding."""


class FindingKind(StrEnum):
    """The kind of a finding."""

    MOTIF = "motif"
    DISCORD = "discord"


@dataclass(frozen=True, slots=True)
class Finding:
    """A subsequence worth reporting. Positions count values since the first one."""

    kind: FindingKind
    number: int
    """1 is the motif with the nearest neighbour, or the discord with the farthest one."""
    start: int
    nearest: int
    """The start of its nearest neighbour."""
    distance: float
    """The distance from the nearest neighbour."""
    occurrences: tuple[int, ...]
    """Starts of all subsequences within the radius, including itself, in order of time."""


class MotifFinder:
    """Holds the values of a window, and finds motifs and discords of a given length.

    The answer depends only on the values in the window. NaN breaks the series, and flat stretches
    are neither motifs nor discords.

    >>> finder = MotifFinder(length=4, motifs=1, discords=0)
    >>> finder.add([0, 1, 5, 2, 0, 0, 3, 0, 3, 2, 4, 12, 6, 3])
    >>> finder.answer()[0].start, finder.answer()[0].nearest
    (0, 9)
    """

    def __init__(
        self, length: int, motifs: int = 3, discords: int = 1, radius: float | None = None
    ) -> None:
        if length < SHORTEST:
            raise MiningError(
                f"a motif has at least {SHORTEST} values, got {length}", argument="length"
            )
        self._length = length
        self._zone = exclusion_zone(length)
        self._motifs = motifs
        self._discords = discords
        self._radius = close_distance(length) if radius is None else float(radius)
        self._values: Numbers = np.empty(0)
        self._forgotten = 0

    @property
    def values(self) -> Numbers:
        """The values in the window."""
        return self._values

    @property
    def forgotten(self) -> int:
        """How many values have left the window: the position of the oldest in it."""
        return self._forgotten

    def add(self, values: Sequence[float] | Numbers) -> None:
        """Add the next values to the window."""
        self._values = np.concatenate([self._values, np.asarray(values, dtype=np.float64)])

    def forget(self, count: int) -> None:
        """Remove the oldest values from the window."""
        count = min(count, len(self._values))
        self._values = self._values[count:].copy()
        self._forgotten += count

    def answer(self) -> list[Finding]:
        """Motifs, the best first, then discords."""
        profile = matrix_profile(self._values, self._length)
        return [*self._find_motifs(profile.copy()), *self._find_discords(profile.copy())]

    def _find_motifs(self, profile: Numbers) -> Iterator[Finding]:
        """The nearest pairs; rows covered by a motif's occurrences belong to no other motif."""
        number = 0
        while number < self._motifs and profile.min(initial=np.inf) <= self._radius:
            start = _first_near(profile, self._length, profile.min())
            finding = self._finding(FindingKind.MOTIF, number + 1, start)
            if finding.distance <= self._radius:
                number += 1
                yield finding
            for place in finding.occurrences:
                shut(profile, place - self._forgotten, self._zone)

    def _find_discords(self, profile: Numbers) -> Iterator[Finding]:
        """The subsequences farthest from all others; they do not overlap."""
        profile[~np.isfinite(profile)] = -np.inf
        number = 0
        while number < self._discords and np.isfinite(profile).any():
            start = _first_near(profile, self._length, profile.max())
            finding = self._finding(FindingKind.DISCORD, number + 1, start)
            if np.isfinite(finding.distance):
                number += 1
                yield finding
            shut(profile, start, self._length - 1, -np.inf)

    def _finding(self, kind: FindingKind, number: int, start: int) -> Finding:
        distances = self._distances_from(start)
        nearest = int(distances.argmin())
        places = occurrences(distances, start, self._radius, self._zone)
        return Finding(
            kind,
            number,
            start + self._forgotten,
            nearest + self._forgotten,
            float(distances[nearest]),
            tuple(place + self._forgotten for place in places),
        )

    def _distances_from(self, start: int) -> Numbers:
        """Distances from one to all others; infinite for flat or broken ones and in its zone."""
        distances = np.full(len(self._values) - self._length + 1, np.inf)
        places = np.flatnonzero(shaped(self._values, self._length))
        shape = z_normalized(self._values[start : start + self._length])
        distances[places] = distances_at(self._values, places, shape, z_distances)
        shut(distances, start, self._zone)
        return distances


def occurrences(distances: Numbers, start: int, radius: float, zone: int) -> list[int]:
    """A start and those within a radius, chosen nearest first, none in another's zone."""
    left = np.where(distances <= radius, distances, np.inf)
    chosen = [start]
    for place in np.argsort(left, kind="stable")[: np.isfinite(left).sum()].tolist():
        if np.isfinite(left[place]):
            chosen.append(place)
            shut(left, place, zone)
    return sorted(chosen)


def shut(distances: Numbers, place: int, zone: int, to: float = np.inf) -> None:
    """Exclude the positions near this one from further choice."""
    distances[max(0, place - zone) : place + zone + 1] = to


def _first_near(profile: Numbers, length: int, distance: float) -> int:
    """The first subsequence with that distance, except for rounding."""
    finite = np.isfinite(profile)
    apart = np.abs(np.square(np.where(finite, profile, 0.0)) - distance**2)
    return int(np.flatnonzero(finite & (apart <= 2 * length * _SAME))[0])
