"""Micro-clusters: many items summarised as a few, each with a count, a centre and a scatter.

They are the cluster features of BIRCH (Zhang, Ramakrishnan, Livny, SIGMOD 1996). Instead of sums of
squares, which cancel out far from the origin, the centre and the sum of squared distances from it
are kept (Lang, Schubert, BETULA, SISAP 2020). BIRCH merges items below a distance threshold, and
raises it when memory runs out. For items of hundreds of numbers, which are all about equally far
apart, such a threshold has no good value. Here each item is a micro-cluster until there are too
many; then they are merged into half as many by Ward's method, which minimises the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nilometer.kernels.arrays import Int64s
from nilometer.mining.group_by_ward import group_by_ward
from nilometer.mining.table_function import Numbers, Saved


@dataclass(frozen=True, slots=True)
class MicroClusters:
    """Micro-clusters as arrays, in the order of the first item of each."""

    numbers: Int64s
    """How many items each has."""
    scatters: Numbers
    """For each, the sum of the squared distances of its items from the centre."""
    centres: Numbers
    """The mean of the items of each, one per row."""
    projected: Numbers
    """The projection of each centre, one per row; empty rows without a projection."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def places(self) -> Numbers:
        """The points between which distances are taken."""
        return self.projected if self.projected.shape[1] else self.centres

    def cut(self, begin: int, end: int) -> MicroClusters:
        """The micro-clusters from begin to end - 1."""
        return MicroClusters(*(column[begin:end] for column in self._columns()))

    def followed_by(self, later: MicroClusters) -> MicroClusters:
        """These, then those of later items."""
        pairs = zip(self._columns(), later._columns(), strict=True)
        return MicroClusters(*(np.concatenate(pair) for pair in pairs))

    def grouped(self, groups: Int64s) -> MicroClusters:
        """One for each group, given the group of each, numbered from 0 in order of appearance."""
        order = np.argsort(groups, kind="stable")
        sorted_groups = groups[order]
        begins = np.flatnonzero(np.diff(sorted_groups, prepend=-1))
        weights = self.numbers[order][:, None]
        totals = np.add.reduceat(weights, begins)

        def means(rows: Numbers) -> Numbers:
            # Relative to the first of each group: single members stay exactly where they are.
            base = rows[order[begins]]
            away = (rows[order] - base[sorted_groups]) * weights
            result: Numbers = base + np.add.reduceat(away, begins) / totals
            return result

        centres = means(self.centres)
        away = self.centres[order] - centres[sorted_groups]
        scatters = self.scatters[order] + np.einsum("ij,ij->i", away, away) * weights[:, 0]
        return MicroClusters(
            totals[:, 0],
            np.add.reduceat(scatters, begins),
            centres,
            means(self.projected),
        )

    def save(self) -> Saved:
        """The arrays by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def load(cls, saved: Saved) -> MicroClusters:
        """Restore the micro-clusters."""
        return cls(**{name: saved[name] for name in cls.__slots__})

    def _columns(self) -> tuple[npt.NDArray[Any], ...]:
        return self.numbers, self.scatters, self.centres, self.projected


def single_items(items: Numbers, projection: Numbers) -> MicroClusters:
    """Each item as a micro-cluster of its own."""
    number = len(items)
    projected = np.zeros((number, len(projection)))
    if len(projection):
        for place, item in enumerate(items):
            # One by one: a matrix product may depend on the number of rows.
            projected[place] = np.einsum("ij,j->i", projection, item)
    return MicroClusters(np.ones(number, np.int64), np.zeros(number), items, projected)


class ItemSummary:
    """A limited number of micro-clusters of all items; the latest are single items.

    `projection` is a matrix with a row for each projected dimension; no rows: no projection.
    """

    def __init__(self, limit: int, projection: Numbers) -> None:
        self._limit = limit
        self._projection = projection
        self.micro = single_items(np.zeros((0, projection.shape[1])), projection)

    def add(self, items: Numbers) -> None:
        """Add the next items."""
        self.absorb(single_items(items, self._projection))

    def absorb(self, later: MicroClusters) -> None:
        """Add micro-clusters of later items.

        Room is made only when the next one comes, so the result does not depend on batches.
        """
        begin = 0
        while begin < len(later):
            if len(self.micro) == self._limit:
                groups = group_by_ward(self.micro.numbers, self.micro.places, self._limit // 2)
                self.micro = self.micro.grouped(groups)
            end = begin + self._limit - len(self.micro)
            self.micro = self.micro.followed_by(later.cut(begin, end))
            begin = end
