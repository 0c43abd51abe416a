"""Joins over windows of which some have hash tables: their order, and which windows get one.

The heuristics are those of Golab and Özsu, "Processing Sliding Window Multi-Joins in Continuous
Queries over Data Streams" (VLDB 2003), section 5.4, cited here as Golab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Final, TypeAlias

from nilometer.errors import InputError
from nilometer.model.join_cost import Links, Order, StreamLoad, cost_of_orders, orders_of
from nilometer.model.join_order import choose_global_order

MOST_CHOICES: Final = 500
"""How many choices of windows are costed; beyond that, windows are added one at a time."""


Cost: TypeAlias = Callable[[frozenset[int]], float]
"""Comparisons per unit of time if only these windows have hash tables."""


def hybrid_order(loads: Sequence[StreamLoad], links: Links | None = None) -> Order:
    """Windows with hash tables in the inner loops, which repeat most often (Golab section 5.4).

    Within each part, the order is that of the general heuristic.

    >>> scanned, hashed = StreamLoad(1, 100, 50), StreamLoad(1, 100, 50, buckets=10)
    >>> hybrid_order([hashed, scanned, hashed])
    (1, 0, 2)
    """
    return _hashed_last(loads, choose_global_order(loads, links))


def choose_loops(loads: Sequence[StreamLoad], links: Links | None = None) -> Order:
    """The cheaper of two orders: the general heuristic's and, with hash tables, `hybrid_order`."""
    return _cheaper_loops(loads, choose_global_order(loads, links), links)


def choose_indexes(
    loads: Sequence[StreamLoad], limit: int, buckets: float, links: Links | None = None
) -> frozenset[int]:
    """The windows, at most `limit`, on which hash tables with this many buckets save the most.

    >>> loads = [StreamLoad(100, 10, 5), StreamLoad(1, 10, 5), StreamLoad(1, 10, 5)]
    >>> sorted(choose_indexes(loads, limit=1, buckets=10))
    [0]
    """
    if limit < 0:
        raise InputError(f"the number of hash tables is 0 or more, got {limit}")
    return _cheapest(len(loads), limit, cost_of_indexes(loads, buckets, links))


def indexes_that_pay(
    loads: Sequence[StreamLoad], buckets: float, sweeps: float, links: Links | None = None
) -> frozenset[int]:
    """The windows on which hash tables save more comparisons than their buckets cost.

    Where old tuples expire, `sweeps` times per unit of time, the oldest tuple of each bucket is
    looked at (Golab section 4.1), which counts as a comparison here.

    >>> loads = [StreamLoad(20, 60, 5), StreamLoad(1, 5, 5), StreamLoad(1, 5, 5)]
    >>> sorted(indexes_that_pay(loads, buckets=10, sweeps=22))
    [0]
    """
    cost = cost_of_indexes(loads, buckets, links)
    looks = sweeps * (buckets - 1)
    choices = (_cheapest(len(loads), limit, cost) for limit in range(len(loads) + 1))
    return min(choices, key=lambda chosen: cost(chosen) + looks * len(chosen))


def cost_of_indexes(
    loads: Sequence[StreamLoad], buckets: float, links: Links | None = None
) -> Cost:
    """What each choice of windows costs.

    The order is that of the windows without hash tables, or with those tables in its inner loops.
    """
    order = choose_global_order(loads, links)

    def cost(chosen: frozenset[int]) -> float:
        indexed = with_indexes(loads, chosen, buckets)
        return _total(indexed, _cheaper_loops(indexed, order, links), links)

    return cost


def with_indexes(
    loads: Sequence[StreamLoad], chosen: frozenset[int], buckets: float
) -> list[StreamLoad]:
    """The streams with hash tables on some windows."""
    return [replace(load, buckets=buckets if i in chosen else None) for i, load in enumerate(loads)]


def _cheapest(streams: int, limit: int, cost: Cost) -> frozenset[int]:
    limit = min(limit, streams)
    if comb(streams, limit) <= MOST_CHOICES:
        return min(map(frozenset, combinations(range(streams), limit)), key=cost)
    chosen: frozenset[int] = frozenset()
    while len(chosen) < limit:
        chosen = min((chosen | {i} for i in range(streams) if i not in chosen), key=cost)
    return chosen


def _cheaper_loops(loads: Sequence[StreamLoad], order: Order, links: Links | None) -> Order:
    orders = order, _hashed_last(loads, order)
    return min(orders, key=lambda one: _total(loads, one, links))


def _hashed_last(loads: Sequence[StreamLoad], order: Order) -> Order:
    scanned = [i for i in order if loads[i].buckets is None]
    return (*scanned, *(i for i in order if loads[i].buckets is not None))


def _total(loads: Sequence[StreamLoad], order: Order, links: Links | None) -> float:
    return cost_of_orders(loads, orders_of(order), links).total
