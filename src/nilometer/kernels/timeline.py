"""The timeline: the counts and sums of groups from each instant on.

Events add to totals of a group at an instant. Sorted by group and time, running totals within
each group give the totals after every instant at which something happens, and before it. All
that can be computed from totals (counts of set operators, COUNT, SUM, AVG, …) builds on this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instants of each group, ordered by group and time."""

    groups: Int64s
    times: Int64s
    before: tuple[Int64s, ...]
    """The totals just before each instant."""
    after: tuple[Int64s, ...]
    """The totals from each instant on, up to the next."""
    lasts: Int64s
    """The position of the last instant of each group that has any."""
    order: Int64s
    """The events, ordered by group and time, those of an instant as they came."""
    ends: Int64s
    """The position, in that order, of the last event of each instant."""

    def __len__(self) -> int:
        return len(self.groups)


def run_timeline(
    groups: Int64s, times: Int64s, deltas: Sequence[Int64s], initial: Sequence[Int64s]
) -> Timeline:
    """The totals of groups over time, given events and the initial totals of every group."""
    order, key = sort_events(groups, times)
    last_of_instant = _last_of_each(key)
    ends = np.flatnonzero(last_of_instant)
    events = order[ends]
    mine = groups[events]
    last_of_group = _last_of_each(mine)
    lasts = np.flatnonzero(last_of_group)
    starts = np.concatenate([np.zeros(1, np.int64), lasts[:-1] + 1])[: len(lasts)]
    lengths = lasts - starts + 1
    before, after = [], []
    for changes, first in zip(deltas, initial, strict=True):
        running = np.cumsum(changes[order])[ends]
        base = first[mine[starts]]
        base[1:] -= running[lasts[:-1]]
        total = running + np.repeat(base, lengths)
        earlier = np.empty_like(total)
        earlier[1:] = total[:-1]
        earlier[starts] = first[mine[starts]]
        before.append(earlier)
        after.append(total)
    return Timeline(mine, times[events], tuple(before), tuple(after), lasts, order, ends)


def sort_events(groups: Int64s, times: Int64s) -> tuple[Int64s, Int64s]:
    """The events ordered by group and time, equal ones as they came; and a key of both.

    The keys, in that order, are equal where group and time are. Group, time and place are
    packed into one integer where they fit: sorting integers is what computers do best.
    """
    if not len(groups):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    since, time_bits = _times_from_zero(times)
    place_bits = len(groups).bit_length()
    group_bits = int(groups.max()).bit_length()
    if group_bits + time_bits > 63:
        ranks, since = np.unique(times, return_inverse=True)
        time_bits = len(ranks).bit_length()
    key = (groups << time_bits) | since
    if group_bits + time_bits + place_bits > 63:
        order = np.argsort(key, kind="stable")
        return order, key[order]
    packed = (key << place_bits) | np.arange(len(groups))
    packed.sort()
    return packed & ((1 << place_bits) - 1), packed >> place_bits


def _times_from_zero(times: Int64s) -> tuple[Int64s, int]:
    first = int(times.min())
    return times - first, (int(times.max()) - first).bit_length()


def _last_of_each(values: Int64s) -> Bools:
    """The positions where a value is the last of consecutive equal ones."""
    last = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=last[:-1])
    return last
