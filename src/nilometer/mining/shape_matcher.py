"""Where a stream is similar to a shape: the best of overlapping matches, found as rows arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from nilometer.kernels.arrays import Int64s
from nilometer.mining.shape_candidates import z_candidates
from nilometer.mining.subsequences import (
    SHORTEST,
    close_distance,
    distances_at,
    plain_distances,
    unbroken,
    z_distances,
    z_normalized,
)
from nilometer.mining.table_function import MiningError, Numbers, Saved

_AT_ONCE: Final = 1 << 18


class Normalize(StrEnum):
    """How a subsequence and the shape are normalised before they are compared."""

    Z = "z"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ShapeMatch:
    """A subsequence that is close to the shape. Positions count values since the first one."""

    start: int
    end: int
    """The position of its last value."""
    known: int
    """The position of the value after which no overlapping match can be better."""
    distance: float


class ShapeMatcher:
    """Follows a series of numbers, and reports where it is close to a shape.

    The subsequence of m values that starts at i is a match if its distance is within the limit,
    less than those of the m // 2 subsequences before it, and at most those of the m // 2 after it.
    This is known m // 2 values after its end. NaN breaks the series.

    >>> matcher = ShapeMatcher([1.0, 2.0, 3.0], distance=0.1)
    >>> matcher.add([9.0, 4.0, 6.0, 8.0])
    []
    >>> matcher.add([7.0])
    [ShapeMatch(start=1, end=3, known=4, distance=0.0)]
    """

    def __init__(
        self,
        shape: npt.ArrayLike,
        distance: float | None = None,
        normalize: Normalize | str = Normalize.Z,
    ) -> None:
        points = np.asarray(shape, dtype=np.float64)
        self._z = Normalize(normalize) is Normalize.Z
        check_shape(points, self._z)
        self._shape = z_normalized(points) if self._z else points
        if distance is None and not self._z:
            raise MiningError(
                "without normalisation there is no distance that is close for every shape",
                hint="give the largest distance of a match",
                argument="distance",
            )
        self._limit = close_distance(len(points)) if distance is None else float(distance)
        self._seen = 0
        self._values: Numbers = np.empty(0)
        self._distances: Numbers = np.empty(0)

    @property
    def length(self) -> int:
        """The length of the shape."""
        return len(self._shape)

    @property
    def limit(self) -> float:
        """The largest distance of a match."""
        return self._limit

    @property
    def seen(self) -> int:
        """The number of values so far."""
        return self._seen

    @property
    def kept(self) -> int:
        """How many of the last values may belong to unconfirmed matches."""
        return self.length + 2 * (self.length // 2) - 1

    def add(self, values: Sequence[float] | Numbers) -> list[ShapeMatch]:
        """Add the next values; returns the newly confirmed matches."""
        new = np.asarray(values, dtype=np.float64)
        begin = self._seen - len(self._values)
        held = len(self._values)
        self._values = np.concatenate([self._values, new])
        self._distances = np.concatenate([self._distances, self._new_distances()])
        self._seen += len(new)
        best = self._best_from(max(0, held - self.length - self.length // 2 + 1))
        matches = [self._match(begin + int(at), float(self._distances[at])) for at in best]
        self._values = self._values[-self.kept :].copy()
        known = max(0, len(self._values) - self.length + 1)
        self._distances = self._distances[len(self._distances) - known :].copy()
        return matches

    def _new_distances(self) -> Numbers:
        """Distances of subsequences that are complete now; infinite if not within the limit."""
        series = self._values[len(self._distances) :]
        distances = np.full(max(0, len(series) - self.length + 1), np.inf)
        if len(distances) > 0:
            if self._z:
                starts, measure = z_candidates(series, self._shape, self._limit), z_distances
            else:
                starts, measure = np.flatnonzero(unbroken(series, self.length)), plain_distances
            distances[starts] = distances_at(series, starts, self._shape, measure)
            distances[distances > self._limit] = np.inf
        return distances

    def _best_from(self, first: int) -> Int64s:
        """Starts, from a given one on, of matches that are better than all they overlap with."""
        half = self.length // 2
        decided = self._distances[first : max(first, len(self._distances) - half)]
        starts = first + np.flatnonzero(np.isfinite(decided))
        if len(starts) == 0:
            return starts
        beside = sliding_window_view(
            np.pad(self._distances, half, constant_values=np.inf), 2 * half + 1
        )
        step = max(1, _AT_ONCE // (2 * half + 1))
        # The first of the smallest is the one in the middle.
        is_best = [
            beside[starts[at : at + step]].argmin(axis=1) == half
            for at in range(0, len(starts), step)
        ]
        return np.asarray(starts[np.concatenate(is_best)])

    def _match(self, start: int, distance: float) -> ShapeMatch:
        end = start + self.length - 1
        return ShapeMatch(start, end, end + self.length // 2, distance)

    def save(self) -> Saved:
        """What `load` needs: fewer values than twice the length of the shape."""
        return {"seen": self._seen, "values": self._values, "distances": self._distances}

    def load(self, saved: Saved) -> Self:
        """Continue from the saved state of a matcher for the same shape."""
        self._seen = saved["seen"]
        self._values = saved["values"]
        self._distances = saved["distances"]
        return self


def check_shape(points: Numbers, z: bool) -> None:
    """Raise an error for a shape that no series can be compared with."""
    if len(points) < SHORTEST:
        raise MiningError(
            f"a shape has at least {SHORTEST} points, got {len(points)}", argument="shape"
        )
    if not np.isfinite(points).all():
        raise MiningError(
            "the values of a shape are numbers, and none of them NULL or NaN", argument="shape"
        )
    if z and points.max() == points.min():
        raise MiningError(
            "a shape whose values are all equal cannot be normalised",
            hint="compare values as they are: normalize => 'none'",
            argument="shape",
        )
