"""The first rows in an order, over time.

Of rows that stand in an order, each with some copies, those with the places from `offset` to
`end`-1 are shown. What changes there during some events is found by halving time: events that
move e copies in all can change only rows that they name, and rows within e places of an edge. All
others are hidden, which leaves small tables of rows by instants to be computed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s

_SMALL: Final = 1 << 14
"""The number of counts computed at once."""


@dataclass(frozen=True, slots=True)
class RowEvents:
    """How many copies of rows are added or retracted, and when; rows by their ranks."""

    rows: Int64s
    times: Int64s
    diffs: Int64s

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, chosen: Bools | slice) -> RowEvents:
        return RowEvents(self.rows[chosen], self.times[chosen], self.diffs[chosen])


@dataclass(frozen=True, slots=True)
class _View:
    """Some of the rows, in order, with their counts and the hidden copies before them."""

    ranks: Int64s
    unseen: Int64s
    counts: Int64s

    def starts(self) -> Int64s:
        """The position at which the copies of each row begin."""
        return self.unseen + np.cumsum(self.counts) - self.counts


class TopCounts:
    """Follows which copies have the places offset … end-1."""

    def __init__(self, offset: int, end: int) -> None:
        self._offset = offset
        self._end = end

    def changes(self, counts: Int64s, events: RowEvents) -> RowEvents:
        """How the shown copies change, given all counts before, and net events by time."""
        view = _View(np.arange(len(counts)), np.zeros(len(counts), np.int64), counts)
        parts = self._replay(view, events)
        return RowEvents(
            np.concatenate([part.rows for part in parts] or [np.zeros(0, np.int64)]),
            np.concatenate([part.times for part in parts] or [np.zeros(0, np.int64)]),
            np.concatenate([part.diffs for part in parts] or [np.zeros(0, np.int64)]),
        )

    def _replay(self, view: _View, events: RowEvents) -> list[RowEvents]:
        view, events = self._narrow(view, events)
        if not len(events):
            return []
        instants = 1 + np.count_nonzero(np.diff(events.times))
        if instants == 1 or instants * len(view.ranks) <= _SMALL:
            return [self._compute(view, events)]
        middle = events.times[len(events) // 2]
        cut = int(np.searchsorted(events.times, middle))
        cut = cut or int(np.searchsorted(events.times, middle, "right"))
        first, second = events.only(slice(None, cut)), events.only(slice(cut, None))
        counts = view.counts.copy()
        np.add.at(counts, first.rows, first.diffs)
        later = _View(view.ranks, view.unseen, counts)
        return self._replay(view, first) + self._replay(later, second)

    def _narrow(self, view: _View, events: RowEvents) -> tuple[_View, RowEvents]:
        """Without the rows whose shown copies cannot change, and what happens after the end."""
        moved = int(np.abs(events.diffs).sum())
        starts = view.starts()
        ends = starts + view.counts
        keep = np.zeros(len(starts), np.bool_)
        keep[events.rows] = True
        for edge in (self._offset, self._end):
            keep |= (view.counts > 0) & (ends >= edge - moved) & (starts <= edge + moved)
        keep &= starts - moved < self._end
        events = events.only(keep[events.rows])
        renumbered = np.cumsum(keep) - 1
        counts = view.counts[keep]
        unseen = starts[keep] - (np.cumsum(counts) - counts)
        narrow = _View(view.ranks[keep], unseen, counts)
        return narrow, RowEvents(renumbered[events.rows], events.times, events.diffs)

    def _compute(self, view: _View, events: RowEvents) -> RowEvents:
        times, instants = np.unique(events.times, return_inverse=True)
        counts = np.zeros((1 + len(times), len(view.ranks)), np.int64)
        counts[0] = view.counts
        np.add.at(counts, (instants + 1, events.rows), events.diffs)
        np.cumsum(counts, axis=0, out=counts)
        ends = np.cumsum(counts, axis=1) + view.unseen
        shown = self._clip(ends) - self._clip(ends - counts)
        diffs = np.diff(shown, axis=0)
        when, which = np.nonzero(diffs)
        return RowEvents(view.ranks[which], times[when], diffs[when, which])

    def _clip(self, places: Int64s) -> Int64s:
        return np.clip(places, self._offset, self._end)
