"""The items of a window in panes of time, each with its own micro-clusters.

The answer must depend only on the items in the window, not on those that have left, so nothing can
be subtracted from micro-clusters that those helped to form. Panes have fixed positions in time. For
a pane within the window the micro-clusters are kept; for the first, which may have lost items, they
are formed again. An answer costs a pane and the micro-clusters, not the window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.micro_clusters import ItemSummary, MicroClusters
from nilometer.mining.table_function import MiningError, Numbers, Saved

_PANES: Final = 16
"""A window has so many panes, and often part of another."""


class WindowPanes:
    """The items of a window; `make` creates an empty summary."""

    def __init__(self, window: int, length: int, make: Callable[[], ItemSummary]) -> None:
        self._pane = max(window // _PANES, 1)
        self._make = make
        self._times = np.zeros(0, np.int64)
        self._items = np.zeros((0, length))
        self._panes: dict[int, ItemSummary] = {}

    @property
    def items(self) -> tuple[Int64s, Numbers]:
        """The times and the items in the window."""
        return self._times, self._items

    def add(self, times: Int64s, items: Numbers) -> None:
        """Add the next items."""
        if (np.diff(np.concatenate([self._times[-1:], times])) < 0).any():
            raise MiningError("the items of a window must come in order of time")
        self._times = np.concatenate([self._times, times])
        self._items = np.concatenate([self._items, items])

    def forget(self, before: int) -> None:
        """Remove the items strictly before a time."""
        leaving = int(np.searchsorted(self._times, before))
        if not leaving:
            return
        changed = int(self._times[leaving - 1]) // self._pane
        self._panes = {pane: micro for pane, micro in self._panes.items() if pane > changed}
        self._times = self._times[leaving:].copy()
        self._items = self._items[leaving:].copy()

    def micro_clusters(self) -> MicroClusters:
        """The micro-clusters of all items in the window."""
        together = self._make()
        begin = 0
        panes = zip(*np.unique(self._times // self._pane, return_counts=True), strict=True)
        for pane, number in panes:
            summary = self._panes.setdefault(int(pane), self._make())
            known = begin + int(summary.micro.numbers.sum())
            begin += int(number)
            summary.add(self._items[known:begin])
            together.absorb(summary.micro)
        return together.micro

    def save(self) -> Saved:
        """The items, and the micro-clusters of the panes, one after the other."""
        together = self._make().micro
        for summary in self._panes.values():
            together = together.followed_by(summary.micro)
        return {
            "times": self._times,
            "items": self._items,
            "panes": np.array(list(self._panes), np.int64),
            "sizes": np.array([len(summary.micro) for summary in self._panes.values()], np.int64),
            **together.save(),
        }

    def load(self, saved: Saved) -> None:
        """Restore from a saved state."""
        self._times, self._items = saved["times"], saved["items"]
        together = MicroClusters.load(saved)
        ends = np.cumsum(saved["sizes"]).tolist()
        for pane, begin, end in zip(saved["panes"].tolist(), [0, *ends], ends, strict=False):
            summary = self._panes[pane] = self._make()
            summary.micro = together.cut(begin, end)
