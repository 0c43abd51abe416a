"""Micro-clusters: many items as a few, each with a number, a centre and a scatter.

As in BIRCH (Zhang, Ramakrishnan, Livny, SIGMOD 1996) an item joins the nearest micro-cluster if it
is within a threshold of its centre, and begins one otherwise; when there are too many, the
threshold is raised and they are inserted anew. They are kept in a list, not in a tree: there are
hundreds, and the nearest is found exactly. Instead of sums of squares, which cancel out far from
the origin, the centre and the sum of squared distances from it are kept (Lang, Schubert, BETULA,
SISAP 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.table_function import Numbers, Saved

Project: TypeAlias = Callable[[Numbers], Numbers]
"""Makes an item shorter; linear."""
_RAISED: Final = 2.0
"""A raised threshold, squared, is at least so many times the one before."""


class _Part(NamedTuple):
    """A micro-cluster, or an item, that is to be inserted."""

    number: int
    centre: Numbers
    scatter: float
    first: int
    projected: Numbers


class MicroClusters:
    """At most so many micro-clusters of items of one length.

    Which micro-cluster is the nearest is decided by projected items, if there is a projection.
    """

    def __init__(
        self, length: int, most: int, threshold: float, project: Project | None = None
    ) -> None:
        self._most = most
        self._project = project
        self.squared_threshold = threshold**2
        self._count = 0
        self._numbers = np.zeros(0, np.int64)
        self._firsts = np.zeros(0, np.int64)
        self._scatters = np.zeros(0)
        self._centres = np.zeros((0, length))
        width = 0 if project is None else len(project(np.zeros(length)))
        self._projected = np.zeros((0, width))

    def __len__(self) -> int:
        return self._count

    @property
    def numbers(self) -> Int64s:
        """How many items each has."""
        return self._numbers[: self._count]

    @property
    def firsts(self) -> Int64s:
        """The number, in the order of the stream, of the first item of each."""
        return self._firsts[: self._count]

    @property
    def scatters(self) -> Numbers:
        """The sum of the squared distances of its items from the centre, of each."""
        return self._scatters[: self._count]

    @property
    def centres(self) -> Numbers:
        """The mean of the items of each."""
        return self._centres[: self._count]

    def add(self, item: Numbers, first: int) -> None:
        """Take in an item, which has a number in the order of the stream."""
        projected = item[:0] if self._project is None else self._project(item)
        self._insert(_Part(1, item, 0.0, first, projected))
        self._condense()

    def absorb(self, other: MicroClusters, after: int = 0) -> None:
        """Take in other micro-clusters, whose items are numbered from `after` on."""
        self.squared_threshold = max(self.squared_threshold, other.squared_threshold)
        for part in other._parts():
            self._insert(part._replace(first=part.first + after))
            self._condense()

    def nearest(self, item: Numbers) -> int:
        """The place of the micro-cluster whose centre is nearest to an item."""
        return int(np.argmin(squared_distances(self.centres, item)))

    def save(self) -> Saved:
        """Everything, as arrays."""
        return {
            "numbers": self.numbers,
            "firsts": self.firsts,
            "scatters": self.scatters,
            "centres": self.centres,
            "projected": self._projected[: self._count],
            "squared_threshold": self.squared_threshold,
        }

    def load(self, saved: Saved) -> None:
        """Be as it was when it was saved."""
        self._numbers = saved["numbers"]
        self._firsts = saved["firsts"]
        self._scatters = saved["scatters"]
        self._centres = saved["centres"]
        self._projected = saved["projected"]
        self.squared_threshold = float(saved["squared_threshold"])
        self._count = len(self._numbers)

    def _parts(self) -> list[_Part]:
        """All of them, apart from this object."""
        return [
            _Part(*one)
            for one in zip(
                self.numbers.tolist(),
                self.centres.copy(),
                self.scatters.tolist(),
                self.firsts.tolist(),
                self._projected[: self._count].copy(),
                strict=True,
            )
        ]

    def _insert(self, part: _Part) -> None:
        if self._count:
            place, away = self._find(part)
            if away + part.scatter / part.number <= self.squared_threshold:
                self._join(place, part, away)
                return
        if self._count == len(self._numbers):
            self._make_room()
        place = self._count
        self._numbers[place] = part.number
        self._centres[place] = part.centre
        self._scatters[place] = part.scatter
        self._firsts[place] = part.first
        self._projected[place] = part.projected
        self._count += 1

    def _find(self, part: _Part) -> tuple[int, float]:
        """The nearest micro-cluster, and the squared distance of its centre."""
        if self._project is None:
            away = squared_distances(self.centres, part.centre)
            place = int(np.argmin(away))
            return place, float(away[place])
        near = squared_distances(self._projected[: self._count], part.projected)
        place = int(np.argmin(near))
        return place, float(squared_distances(self._centres[place : place + 1], part.centre)[0])

    def _join(self, place: int, part: _Part, away: float) -> None:
        before = int(self._numbers[place])
        share = part.number / (before + part.number)
        self._numbers[place] = before + part.number
        self._centres[place] += (part.centre - self._centres[place]) * share
        self._projected[place] += (part.projected - self._projected[place]) * share
        self._scatters[place] += part.scatter + away * before * share
        self._firsts[place] = min(int(self._firsts[place]), part.first)

    def _make_room(self) -> None:
        rows = min(max(8, 2 * self._count), self._most + 1)
        for name in ("_numbers", "_firsts", "_scatters", "_centres", "_projected"):
            old = getattr(self, name)
            new = np.zeros((rows, *old.shape[1:]), old.dtype)
            new[: self._count] = old[: self._count]
            setattr(self, name, new)

    def _condense(self) -> None:
        """Raise the threshold until there are no more than so many."""
        while self._count > self._most:
            near = np.median(self._nearest_others())
            self.squared_threshold = max(float(near), _RAISED * self.squared_threshold)
            parts = self._parts()
            self._count = 0
            for part in parts:
                self._insert(part)

    def _nearest_others(self) -> Numbers:
        """From which squared threshold on each would join its nearest neighbour."""
        places = self.centres if self._project is None else self._projected[: self._count]
        squared_radii = self.scatters / self.numbers
        found = np.zeros(self._count)
        for place in range(self._count):
            away = squared_distances(places, places[place])
            away[place] = np.inf
            other = int(np.argmin(away))
            found[place] = away[other] + max(squared_radii[place], squared_radii[other])
        return found


def squared_distances(places: Numbers, item: Numbers) -> Numbers:
    """The squared Euclidean distances of places from an item.

    Computed from differences, and in one order however many cores there are: never by BLAS.
    """
    away = places - item
    found: Numbers = np.einsum("ij,ij->i", away, away)
    return found
