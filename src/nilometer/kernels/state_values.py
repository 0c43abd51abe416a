"""All values of groups in every state, for lists, texts and modes.

The cost is the total number of values over all states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.group_instants import GroupInstants
from nilometer.kernels.moving_ranks import ValueEvents
from nilometer.kernels.value_runs import GroupRuns


@dataclass(frozen=True, slots=True)
class Lists:
    """A list of values for every state."""

    offsets: Int64s
    values: Int64s


@dataclass(frozen=True, slots=True)
class StateValues:
    """The distinct values of every state, in order, with how often each is there."""

    size: int
    """How many states there are."""
    states: Int64s
    values: Int64s
    counts: Int64s

    def distinct(self) -> StateValues:
        """Each value once."""
        return StateValues(self.size, self.states, self.values, np.ones_like(self.counts))

    def repeated(self, *, reverse: bool) -> Lists:
        """Values as often as they occur, in ascending or descending order."""
        values, states = np.repeat(self.values, self.counts), np.repeat(self.states, self.counts)
        lengths = np.bincount(states, minlength=self.size)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        if reverse:
            first, last = offsets[states], offsets[states + 1] - 1
            values = values[first + last - np.arange(len(values))]
        return Lists(offsets, values)

    def most_frequent(self) -> tuple[Int64s, Bools]:
        """The most frequent value of every state (the smallest on ties), and whether it has any."""
        order = np.lexsort((self.values, -self.counts, self.states))
        firsts = np.ones(len(order), np.bool_)
        firsts[1:] = np.diff(self.states[order]) != 0
        places = order[firsts]
        modes, some = np.zeros(self.size, np.int64), np.zeros(self.size, np.bool_)
        modes[self.states[places]] = self.values[places]
        some[self.states[places]] = True
        return modes, some


def all_events(
    instants: GroupInstants, content: GroupRuns, events: ValueEvents
) -> tuple[Int64s, Int64s, Int64s]:
    """States, values and counts of all additions and removals, including the initial content."""
    groups, values, counts = content.all_entries()
    return (
        np.concatenate([instants.firsts[groups], events.states]),
        np.concatenate([values, events.values]),
        np.concatenate([counts, events.diffs]),
    )


def values_in_states(
    instants: GroupInstants, content: GroupRuns, events: ValueEvents
) -> StateValues:
    """The values of every state, given the initial content of groups and the changes."""
    states, values, counts = all_events(instants, content, events)
    # A value added in a state stays in all later ones of its group.
    last = instants.lasts[instants.groups[states]]
    lengths = last - states + 1
    first = np.repeat(states - (np.cumsum(lengths) - lengths), lengths)
    every = first + np.arange(len(first))
    return _netted(len(instants), every, np.repeat(values, lengths), np.repeat(counts, lengths))


def _netted(size: int, states: Int64s, values: Int64s, counts: Int64s) -> StateValues:
    order = np.lexsort((values, states))
    states, values, counts = states[order], values[order], counts[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (np.diff(states) != 0) | (np.diff(values) != 0)
    ends = np.flatnonzero(last)
    totals = np.diff(np.cumsum(counts)[ends], prepend=0)
    nonzero = ends[totals != 0]
    return StateValues(size, states[nonzero], values[nonzero], totals[totals != 0])
