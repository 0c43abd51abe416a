"""Incremental clustering of vectors (STEAM 7.2), in one pass.

Items become micro-clusters as they arrive; an answer groups these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.group_by_ward import group_by_ward, squared_distances
from nilometer.mining.micro_clusters import ItemSummary, MicroClusters, single_items
from nilometer.mining.table_function import MiningError, Numbers, Saved
from nilometer.mining.window_panes import WindowPanes

METRICS: Final = ("euclidean", "cosine")
LARGEST: Final = 1e100
"""Items with larger numbers are unusable: their squares would overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Items that are near each other."""

    cluster: int
    """Clusters are numbered from 1 in the order of the first item of each."""
    size: int
    """How many items it has."""
    share: float
    """Its share of all items."""
    radius: float
    """The root mean square distance of its items from the centre."""
    centre: Numbers
    """The mean of its items."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """How items are clustered; `OnlineClusters` says what each means."""

    clusters: int
    apart: float | None
    metric: str
    micro_clusters: int
    dimensions: int | None

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise MiningError(
                f"there is no metric {self.metric}",
                hint=f"one of {', '.join(METRICS)}",
                argument="metric",
            )
        if self.micro_clusters < 2 * self.clusters:
            # Room is made by merging into half as many: these must still distinguish clusters.
            raise MiningError(
                "there must be at least twice as many micro-clusters as clusters",
                detail=f"{self.micro_clusters} for {self.clusters} clusters",
                argument="micro_clusters",
            )


class OnlineClusters:
    """Clusters items of equal length as they arrive, into at most `clusters`.

    apart           clusters whose centres are nearer to each other than this are merged
    metric          'euclidean'; or 'cosine', which scales items to length 1 first
    micro_clusters  how many are kept at most; more are finer, and slower
    dimensions      distances are taken after a random projection to so many: faster
    window          microseconds; then items have times and can be forgotten

    >>> clusters = OnlineClusters(2)
    >>> clusters.add([[0, 1], [9, 9], [0, 2], [9, 8], [0, 3]])
    >>> for one in clusters.answer():
    ...     print(one.cluster, one.size, one.centre.tolist(), round(one.radius, 3))
    1 3 [0.0, 2.0] 0.816
    2 2 [9.0, 8.5] 0.5
    >>> clusters.assign([[8, 8], [1, 1]]).tolist()
    [2, 1]
    """

    def __init__(
        self,
        clusters: int = 8,
        *,
        apart: float | None = None,
        metric: str = "euclidean",
        micro_clusters: int = 256,
        dimensions: int | None = None,
        window: int | None = None,
    ) -> None:
        self._options = ClusterOptions(clusters, apart, metric, micro_clusters, dimensions)
        self._window = window
        self.length: int | None = None
        """How many numbers an item has; None before the first."""
        self._summary: ItemSummary | None = None
        self._panes: WindowPanes | None = None

    def add(self, items: npt.ArrayLike, times: npt.ArrayLike | None = None) -> None:
        """Add the next items, the rows of a matrix; with a window also their ascending times.

        Items with NaN, infinity or very large numbers are ignored; for the cosine metric also those
        of all zeros.
        """
        matrix = np.atleast_2d(np.asarray(items, np.float64))
        if not matrix.size:
            return
        self.set_length(matrix.shape[1])
        matrix, usable = self._usable(matrix)
        if self._panes is not None:
            when = np.asarray([] if times is None else times, np.int64)
            if when.shape != usable.shape:
                raise MiningError("in a window every item has a time")
            self._panes.add(when[usable], matrix[usable])
        elif self._summary is not None:
            self._summary.add(matrix[usable])

    def set_length(self, length: int) -> None:
        """Set how many numbers an item has; by default the first item determines it."""
        if self.length == length:
            return
        if self.length is not None:
            raise MiningError(
                "items must be of one length", detail=f"{length} numbers, not {self.length}"
            )
        self.length = length
        if self._window is None:
            self._summary = self._make()
        else:
            self._panes = WindowPanes(self._window, length, self._make)

    def forget(self, before: int) -> None:
        """Remove the items strictly before a time from the window."""
        if self._window is None:
            raise MiningError("items can be forgotten only in a window")
        if self._panes is not None:
            self._panes.forget(before)

    def merge(self, later: OnlineClusters) -> None:
        """Add the items that follow these, clustered elsewhere; the other object is unchanged.

        Sizes, and the mean of all items, are exact; which items are grouped may differ from a
        single pass, except in a window.
        """
        if (later._options, later._window) != (self._options, self._window):
            raise MiningError("only what was clustered in the same way can be merged")
        if later.length is None:
            return
        self.set_length(later.length)
        if self._summary is not None and later._summary is not None:
            self._summary.absorb(later._summary.micro)
        if self._panes is not None and later._panes is not None:
            self._panes.add(*later._panes.items)

    def answer(self) -> list[Cluster]:
        """The clusters of all items, in the order of their first items."""
        micro = self._micro_clusters()
        if not len(micro):
            return []
        groups = micro.grouped(self._labels(micro))
        total = int(groups.numbers.sum())
        return [
            Cluster(number, size, size / total, sqrt(scatter / size), centre)
            for number, (size, scatter, centre) in enumerate(
                zip(groups.numbers.tolist(), groups.scatters.tolist(), groups.centres, strict=True),
                1,
            )
        ]

    def assign(self, items: npt.ArrayLike) -> Int64s:
        """The number of the cluster that items would now belong to; 0 if they are unusable."""
        micro = self._micro_clusters()
        matrix, usable = self._usable(np.atleast_2d(np.asarray(items, np.float64)))
        numbers = np.zeros(len(matrix), np.int64)
        if len(micro):
            labels = self._labels(micro)
            for place, item in enumerate(single_items(matrix, self._projection()).places):
                numbers[place] = labels[np.argmin(squared_distances(micro.places, item))] + 1
        return np.where(usable, numbers, 0)

    def save(self) -> Saved:
        """What `load` needs: the micro-clusters, and with a window the items."""
        saved: Saved = {"length": self.length}
        if self._summary is not None:
            saved |= self._summary.micro.save()
        return saved if self._panes is None else saved | self._panes.save()

    def load(self, saved: Saved) -> None:
        """Continue from a saved state, with the same arguments."""
        if saved["length"] is not None:
            self.set_length(saved["length"])
        if self._summary is not None:
            self._summary.micro = MicroClusters.load(saved)
        if self._panes is not None:
            self._panes.load(saved)

    def _make(self) -> ItemSummary:
        return ItemSummary(self._options.micro_clusters, self._projection())

    def _projection(self) -> Numbers:
        length, dimensions = self.length or 0, self._options.dimensions
        if dimensions is None or dimensions >= length:
            return np.zeros((0, length))
        return _random_projection(length, dimensions)

    def _micro_clusters(self) -> MicroClusters:
        if self._panes is not None:
            return self._panes.micro_clusters()
        return (self._summary or self._make()).micro

    def _labels(self, micro: MicroClusters) -> Int64s:
        """The clusters of micro-clusters, numbered from 0 in the order of their first items."""
        options = self._options
        return group_by_ward(micro.numbers, micro.places, options.clusters, options.apart)

    def _usable(self, matrix: Numbers) -> tuple[Numbers, Bools]:
        """The items as they are compared, and which of them are usable."""
        usable: Bools = np.all(np.abs(matrix) <= LARGEST, axis=1)
        items: Numbers = np.where(usable[:, None], matrix, 0.0)
        if self._options.metric == "cosine":
            largest = np.abs(items).max(axis=1)
            usable &= largest > 0
            items /= np.where(usable, largest, 1.0)[:, None]
            # One by one: a sum over rows of a matrix may depend on the number of rows.
            lengths = np.array([sqrt(float((item * item).sum())) for item in items])
            items /= np.where(usable, lengths, 1.0)[:, None]
        return items, usable


@cache
def _random_projection(length: int, dimensions: int) -> Numbers:
    """A matrix that nearly preserves distances (Johnson, Lindenstrauss), always the same one."""
    from sklearn.random_projection import GaussianRandomProjection  # noqa: PLC0415

    random = GaussianRandomProjection(dimensions, random_state=0)
    matrix: Numbers = random.fit(np.zeros((1, length))).components_
    return matrix
