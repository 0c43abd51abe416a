"""Values of groups in sorted runs: how many are at most a limit, and which lie in a band.

A run is sorted by group and value and holds counts, which may be negative: a newer run takes
back what an older one holds. Over all runs together no count is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.order_statistics import order_by_two

_FEW: Final = 48
"""Of groups with this few entries all are taken: that is faster than choosing."""


@dataclass(frozen=True, slots=True)
class ValueRun:
    """One run. A group and a value occur once; their count is the rise of `running` there."""

    groups: Int64s
    values: Int64s
    running: Int64s

    def total(self, ends: Int64s) -> Int64s:
        """The total counts before some positions."""
        return np.where(ends > 0, self.running[ends - 1], 0)

    @property
    def counts(self) -> Int64s:
        return np.diff(self.running, prepend=0)


def make_run(groups: Int64s, values: Int64s, counts: Int64s) -> tuple[ValueRun, Int64s]:
    """A run of counts in any order, netted; and the position that each of its values came from."""
    order = order_by_two(groups, values)
    groups, values = groups[order], values[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
    ends = np.flatnonzero(last)
    running = np.cumsum(counts[order])[ends]
    ends = ends[np.diff(running, prepend=0) != 0]
    running = running[np.diff(running, prepend=0) != 0]
    return ValueRun(groups[ends], values[ends], running), order[ends]


@dataclass(frozen=True, slots=True)
class Band:
    """Values above `lows` and at most `highs`, per group; unlimited where there is none."""

    lows: Int64s
    has_low: Bools
    highs: Int64s
    has_high: Bools

    def below(self, groups: Int64s, values: Int64s) -> Bools:
        """Which values of groups lie below the band."""
        return self.has_low[groups] & (values <= self.lows[groups])

    def not_above(self, groups: Int64s, values: Int64s) -> Bools:
        """Which values of groups lie below the band or in it."""
        return ~self.has_high[groups] | (values <= self.highs[groups])


class GroupRuns:
    """The content of some runs for some groups, which are numbered 0, 1, … here."""

    def __init__(self, runs: Sequence[ValueRun], numbers: Int64s) -> None:
        """The numbers are those that the groups have in the runs."""
        self._runs = [run for run in runs if len(run.groups)]
        self._begins = [np.searchsorted(run.groups, numbers) for run in self._runs]
        self._ends = [np.searchsorted(run.groups, numbers, "right") for run in self._runs]
        self._size = len(numbers)

    def count_at_most(self, groups: Int64s, values: Int64s) -> Int64s:
        """How many values of each of these groups are at most this large."""
        counts = np.zeros(len(groups), np.int64)
        for run, begins, ends in zip(self._runs, self._begins, self._ends, strict=True):
            first = begins[groups]
            places = _upper_bounds(run.values, first, ends[groups], values)
            counts += run.total(places) - run.total(first)
        return counts

    def counts_below(self, band: Band) -> Int64s:
        """How many values of each group lie below a band."""
        return self._counts(band.lows, band.has_low, whole=False)

    def counts_not_above(self, band: Band) -> Int64s:
        """How many values of each group lie below a band or in it."""
        return self._counts(band.highs, band.has_high, whole=True)

    def band(self, least: Int64s, most: Int64s) -> Band:
        """A band with at most least[g] values below and at least most[g], more, not above.

        Its edges are values of the longest run of each group, so it may be wider than needed.
        """
        if not self._runs:
            nothing, no = np.zeros(self._size, np.int64), np.zeros(self._size, np.bool_)
            return Band(nothing, no, nothing, no)
        lengths = np.stack([e - b for b, e in zip(self._begins, self._ends, strict=True)])
        longest = np.argmax(lengths, axis=0)
        large = np.flatnonzero(lengths.sum(axis=0) > _FEW)
        everyone = np.arange(self._size)
        begins = np.stack(self._begins)[longest, everyone]
        ends = np.stack(self._ends)[longest, everyone]
        below, above = begins - 1, ends.copy()
        both = np.tile(large, 2)
        targets = np.concatenate([least[large], most[large] - 1])
        places = self._bisect(both, longest[both], begins[both], ends[both], targets)
        below[large], above[large] = places[: len(large)] - 1, places[len(large) :]
        has_low, has_high = below >= begins, above < ends
        return Band(
            self._values(longest, np.where(has_low, below, -1)),
            has_low,
            self._values(longest, np.where(has_high, above, -1)),
            has_high,
        )

    def entries(self, band: Band) -> tuple[Int64s, Int64s, Int64s]:
        """Groups, values and counts in a band, run by run."""
        parts = []
        for run, begins, ends in zip(self._runs, self._begins, self._ends, strict=True):
            low = np.where(band.has_low, _upper_bounds(run.values, begins, ends, band.lows), begins)
            high = np.where(
                band.has_high, _upper_bounds(run.values, begins, ends, band.highs), ends
            )
            lengths = high - low
            groups = np.repeat(np.arange(self._size), lengths)
            first = np.repeat(low - (np.cumsum(lengths) - lengths), lengths)
            places = first + np.arange(len(groups))
            counts = run.running[places] - run.total(places)
            parts.append((groups, run.values[places], counts))
        if not parts:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing, nothing
        groups, values, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        return groups, values, counts

    def all_entries(self) -> tuple[Int64s, Int64s, Int64s]:
        """All groups, values and counts, run by run."""
        nothing, no = np.zeros(self._size, np.int64), np.zeros(self._size, np.bool_)
        return self.entries(Band(nothing, no, nothing, no))

    def _counts(self, limits: Int64s, limited: Bools, *, whole: bool) -> Int64s:
        counts = np.zeros(self._size, np.int64)
        for run, begins, ends in zip(self._runs, self._begins, self._ends, strict=True):
            places = _upper_bounds(run.values, begins, ends, limits)
            places = np.where(limited, places, ends if whole else begins)
            counts += run.total(places) - run.total(begins)
        return counts

    def _bisect(
        self, groups: Int64s, longest: Int64s, begins: Int64s, ends: Int64s, targets: Int64s
    ) -> Int64s:
        """The first place of the longest run where more values than the target are at most it."""
        low, high = begins.copy(), ends.copy()
        open_ones = np.flatnonzero(low < high)
        while len(open_ones):
            middle = (low[open_ones] + high[open_ones]) >> 1
            pivots = self._values(longest[open_ones], middle)
            few = self.count_at_most(groups[open_ones], pivots) <= targets[open_ones]
            low[open_ones[few]] = middle[few] + 1
            high[open_ones[~few]] = middle[~few]
            open_ones = open_ones[low[open_ones] < high[open_ones]]
        return low

    def _values(self, runs: Int64s, places: Int64s) -> Int64s:
        """Values at positions of runs; zero where there is no position."""
        values = np.zeros(len(places), np.int64)
        for number, run in enumerate(self._runs):
            mine = np.flatnonzero((runs == number) & (places >= 0))
            values[mine] = run.values[places[mine]]
        return values


def _upper_bounds(values: Int64s, begins: Int64s, ends: Int64s, wanted: Int64s) -> Int64s:
    """The first place in begins[i] … ends[i] whose value is larger than wanted[i], else the end."""
    low, high = begins.copy(), ends.copy()
    last = max(len(values) - 1, 0)
    for _ in range(int((ends - begins).max(initial=0)).bit_length()):
        middle = np.minimum((low + high) >> 1, last)
        searching = low < high
        small = searching & (values[middle] <= wanted)
        low = np.where(small, middle + 1, low)
        high = np.where(searching & ~small, middle, high)
    return low
