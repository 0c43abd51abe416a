"""Joins over windows of which some have hash tables: their order, and which windows get one.

The heuristics are those of Golab and Özsu, "Processing Sliding Window Multi-Joins in Continuous
Queries over Data Streams" (VLDB 2003), section 5.4, cited here as Golab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Final

from nilometer.errors import InputError
from nilometer.model.join_order import (
    Order,
    StreamLoad,
    choose_global_order,
    cost_of_orders,
    orders_of,
)

MOST_CHOICES: Final = 500
"""How many choices of windows are costed; beyond that, windows are added one at a time."""


def hybrid_order(loads: Sequence[StreamLoad]) -> Order:
    """Windows with hash tables in the inner loops, which repeat most often (Golab section 5.4).

    Within each part, the order is that of the general heuristic.

    >>> scanned, hashed = StreamLoad(1, 100, 50), StreamLoad(1, 100, 50, buckets=10)
    >>> hybrid_order([hashed, scanned, hashed])
    (1, 0, 2)
    """
    order = choose_global_order(loads)
    scanned = [i for i in order if loads[i].buckets is None]
    return (*scanned, *(i for i in order if loads[i].buckets is not None))


def choose_indexes(loads: Sequence[StreamLoad], most: int, buckets: float) -> frozenset[int]:
    """The windows, at most `most`, on which hash tables with this many buckets save the most.

    Every choice is costed with the order that the heuristic then picks.

    >>> loads = [StreamLoad(100, 10, 5), StreamLoad(1, 10, 5), StreamLoad(1, 10, 5)]
    >>> sorted(choose_indexes(loads, most=1, buckets=10))
    [0]
    """
    if most < 0:
        raise InputError(f"the number of hash tables is 0 or more, got {most}")
    streams, most = range(len(loads)), min(most, len(loads))

    def cost(chosen: frozenset[int]) -> float:
        return cost_with_indexes(loads, chosen, buckets)

    if comb(len(loads), most) <= MOST_CHOICES:
        return min(map(frozenset, combinations(streams, most)), key=cost)
    chosen: frozenset[int] = frozenset()
    while len(chosen) < most:
        chosen = min((chosen | {i} for i in streams if i not in chosen), key=cost)
    return chosen


def cost_with_indexes(loads: Sequence[StreamLoad], chosen: frozenset[int], buckets: float) -> float:
    """Comparisons per unit of time if only these windows have hash tables."""
    indexed = with_indexes(loads, chosen, buckets)
    return cost_of_orders(indexed, orders_of(choose_global_order(indexed))).total


def with_indexes(
    loads: Sequence[StreamLoad], chosen: frozenset[int], buckets: float
) -> list[StreamLoad]:
    """The streams with hash tables on some windows."""
    return [replace(load, buckets=buckets if i in chosen else None) for i, load in enumerate(loads)]
