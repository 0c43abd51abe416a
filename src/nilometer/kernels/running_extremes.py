"""The smallest or largest value so far, in every state of groups whose rows are never retracted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.group_instants import GroupInstants


@dataclass(frozen=True)
class Extremes:
    """The extremes of groups before: one value each, where there is any."""

    values: Int64s
    are_there: Bools


def running_extremes(
    instants: GroupInstants, states: Int64s, values: Int64s, before: Extremes, *, largest: bool
) -> Int64s:
    """The extreme value in every state, given the values added; arbitrary where there is none."""
    held = np.flatnonzero(before.are_there)
    places = np.concatenate([states, instants.firsts[held]])
    ordered, ranks = np.unique(np.concatenate([values, before.values[held]]), return_inverse=True)
    if not len(ordered):
        return np.zeros(len(instants), np.int64)
    last = len(ordered) - 1
    best = np.zeros(len(instants), np.int64)  # 0: none yet
    np.maximum.at(best, places, 1 + (ranks if largest else last - ranks))
    base = instants.groups * (len(ordered) + 1)  # a state of the next group is above all of this
    best_ranks = np.maximum(np.maximum.accumulate(base + best) - base - 1, 0)
    extremes: Int64s = ordered[best_ranks if largest else last - best_ranks]
    return extremes
