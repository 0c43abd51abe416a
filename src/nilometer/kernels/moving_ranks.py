"""Values of given ranks in every state of groups, as values are added and removed.

Only values near the rank matter. A band of values around it is guessed, and how many lie below
it and in it is counted in every state; where the rank leaves the band, a wider one is taken that
it cannot leave. Values outside are counted, not ordered, so a period costs its own events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.group_instants import GroupInstants
from nilometer.kernels.order_statistics import Elements, kth_smallest
from nilometer.kernels.value_runs import Band, GroupRuns

_LEAST_MARGIN: Final = 24
_DEVIATIONS: Final = 4.0
_FAR: Final = np.int64(1 << 62)


@dataclass(frozen=True, slots=True)
class ValueEvents:
    """Values added and removed, ordered by the states that begin with them."""

    states: Int64s
    groups: Int64s
    values: Int64s
    diffs: Int64s


@dataclass(frozen=True, slots=True)
class Ranks:
    """For every state, the number of values and the two ranks requested."""

    sizes: Int64s
    lows: Int64s
    highs: Int64s
    spread: float
    """The variance of the rank when one middle value is added or removed at random."""


def values_at_ranks(
    instants: GroupInstants, content: GroupRuns, events: ValueEvents, ranks: Ranks
) -> tuple[Int64s, Int64s]:
    """The values of both ranks in every state; zero where there are no values."""
    band = _sure_band(instants, content, events, ranks)
    below, _ = _counts(instants, content, events, band)
    elements, states = _elements(instants, content, events, band)
    ends = np.cumsum(np.bincount(states, minlength=len(instants)))
    begins = np.concatenate([np.zeros(1, np.int64), ends])[instants.firsts][instants.groups]
    nonempty = np.flatnonzero(ranks.sizes > 0)
    further = nonempty[ranks.highs[nonempty] != ranks.lows[nonempty]]
    wanted = np.concatenate([ranks.lows[nonempty], ranks.highs[further]])
    places = np.concatenate([nonempty, further])
    answers = _answers(elements, begins[places], ends[places], wanted - below[places])
    lows = np.zeros(len(instants), np.int64)
    lows[nonempty] = answers[: len(nonempty)]
    highs = lows.copy()
    highs[further] = answers[len(nonempty) :]
    return lows, highs


def _sure_band(
    instants: GroupInstants, content: GroupRuns, events: ValueEvents, ranks: Ranks
) -> Band:
    firsts = instants.firsts
    happening = np.bincount(events.groups, np.abs(events.diffs), minlength=len(firsts))
    margin = (_LEAST_MARGIN + _DEVIATIONS * np.sqrt(happening * ranks.spread)).astype(np.int64)
    low, high = ranks.lows[firsts] - margin, ranks.highs[firsts] + 1 + margin
    empty = ranks.sizes[firsts] == 0
    low[empty], high[empty] = -_FAR, _FAR
    band = content.band(low, high)
    below, not_above = _counts(instants, content, events, band)
    outside = (ranks.sizes > 0) & ((below > ranks.lows) | (not_above <= ranks.highs))
    if not outside.any():
        return band
    lost = np.unique(instants.groups[outside])
    came = np.bincount(events.groups, np.maximum(events.diffs, 0), minlength=len(firsts))
    left = np.bincount(events.groups, np.maximum(-events.diffs, 0), minlength=len(firsts))
    lowest = np.minimum.reduceat(np.where(ranks.sizes > 0, ranks.lows, _FAR), firsts)
    highest = np.maximum.reduceat(np.where(ranks.sizes > 0, ranks.highs, -1), firsts)
    low[lost] = (lowest - came.astype(np.int64))[lost]
    high[lost] = (highest + 1 + left.astype(np.int64))[lost]
    return content.band(low, high)


def _counts(
    instants: GroupInstants, content: GroupRuns, events: ValueEvents, band: Band
) -> tuple[Int64s, Int64s]:
    """How many values lie below the band, and below or in it, in every state."""
    below = np.where(band.below(events.groups, events.values), events.diffs, 0)
    inside = np.where(band.not_above(events.groups, events.values), events.diffs, 0)
    return (
        instants.running(instants.add_up(events.states, below), content.counts_below(band)),
        instants.running(instants.add_up(events.states, inside), content.counts_not_above(band)),
    )


def _elements(
    instants: GroupInstants, content: GroupRuns, events: ValueEvents, band: Band
) -> tuple[Elements, Int64s]:
    """The values initially in the band, those added and removed there, and their states."""
    held_groups, held_values, held_counts = content.entries(band)
    inside = np.flatnonzero(
        ~band.below(events.groups, events.values) & band.not_above(events.groups, events.values)
    )
    states = np.concatenate([instants.firsts[held_groups], events.states[inside]])
    order = np.argsort(states, kind="stable")
    elements = Elements(
        np.concatenate([held_groups, events.groups[inside]])[order],
        np.concatenate([held_values, events.values[inside]])[order],
        np.concatenate([held_counts, events.diffs[inside]])[order],
    )
    return elements, states[order]


def _answers(elements: Elements, begins: Int64s, ends: Int64s, ranks: Int64s) -> Int64s:
    """The answers to queries, many of which repeat the one before."""
    if not len(ranks):
        return np.zeros(0, np.int64)
    new = np.ones(len(ranks), np.bool_)
    new[1:] = (ranks[1:] != ranks[:-1]) | (ends[1:] != ends[:-1]) | (begins[1:] != begins[:-1])
    distinct = np.flatnonzero(new)
    answers = kth_smallest(elements, begins[distinct], ends[distinct], ranks[distinct])
    everyone: Int64s = answers[np.cumsum(new) - 1]
    return everyone
