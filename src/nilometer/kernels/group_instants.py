"""The states of groups in a period: one before all its events, and one from each instant on.

States are numbered by group and time: the first of each group is its state before the period.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.timeline import sort_events


@dataclass(frozen=True)
class GroupInstants:
    """Groups 0, 1, …, each with at least one event."""

    starts: Int64s
    """The first state of each group, followed by the number of all states."""
    groups: Int64s
    """The group of each state."""
    times: Int64s
    """From when each state holds; of first states it says nothing."""
    states: Int64s
    """The state that begins with each event."""
    order: Int64s
    """The events ordered by their states."""

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def firsts(self) -> Int64s:
        """The first state of each group."""
        return self.starts[:-1]

    @property
    def lasts(self) -> Int64s:
        """The last state of each group."""
        return self.starts[1:] - 1

    def add_up(self, states: Int64s, changes: Int64s) -> Int64s:
        """The sum of some changes for every state at which they happen."""
        sums = np.zeros(len(self), np.int64)
        np.add.at(sums, states, changes)
        return sums

    def running(self, changes: Int64s, initial: Int64s) -> Int64s:
        """Running totals in every state, given its changes and the initial totals of groups."""
        totals = np.cumsum(changes)
        base = initial - totals[self.firsts]
        totals += base[self.groups]
        return totals


def group_instants(groups: Int64s, times: Int64s) -> GroupInstants:
    """The states of groups 0, 1, … given their events, at least one for each group."""
    order, key = sort_events(groups, times)
    first_of_instant = np.ones(len(order), np.bool_)
    np.not_equal(key[1:], key[:-1], out=first_of_instant[1:])
    places = order[first_of_instant]
    own = groups[places]
    instants = np.cumsum(first_of_instant) - 1
    count = int(own[-1]) + 1 if len(own) else 0
    states = np.empty(len(order), np.int64)
    states[order] = instants + own[instants] + 1
    starts = np.searchsorted(own, np.arange(count + 1)) + np.arange(count + 1)
    all_times = np.zeros(len(own) + count, np.int64)
    all_times[np.arange(len(own)) + own + 1] = times[places]
    return GroupInstants(
        starts, np.repeat(np.arange(count), np.diff(starts)), all_times, states, order
    )
