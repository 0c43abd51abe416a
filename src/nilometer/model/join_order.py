"""Join orders: which order of the streams of a multi-way window join is cheap.

The heuristics are those of Golab and Özsu, "Processing Sliding Window Multi-Joins in Continuous
Queries over Data Streams" (VLDB 2003), cited here as Golab, and so is the cost model
(`join_cost`). Streams are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import inf, isclose
from statistics import median_low
from typing import Final, TypeAlias

from nilometer.errors import InputError
from nilometer.model.join_cost import (
    Join,
    Links,
    Order,
    Partial,
    Predicate,
    Scan,
    StreamLoad,
    all_links,
    orders_of,
)

FAST: Final = 1.5
"""A stream is fast if its rate is more than this many times the (lower) median of the rates."""

MOST_ORDERS: Final = 2000
"""How many global orders are costed; among many streams only the fastest few are moved."""

MOST_BETTERED: Final = 8
"""How many streams an order that is improved may have; the time grows with the cube."""

Preference: TypeAlias = Callable[[Partial, int], float]
"""How soon a stream should be joined to a partial result: the lowest value first."""


def choose_orders(
    loads: Sequence[StreamLoad],
    links: Links | None = None,
    scan: Scan = Scan.NLJ,
    predicates: Sequence[Predicate] = (),
) -> tuple[Order, ...]:
    """For each origin of new tuples, a cheap order of all other streams.

    The orders are independent of each other (Golab section 5.2). Each is greedy, the most
    selective predicate that the join graph allows first (Golab section 5.4), and then improved
    by moving single streams. A stream that no key links to those already joined waits until
    there is no other.

    >>> loads = [StreamLoad(1, 100, 50), StreamLoad(1, 200, 40), StreamLoad(3, 100, 5)]
    >>> choose_orders(loads, links=[frozenset({0, 2}), frozenset({1, 2})])
    ((2, 1), (2, 0), (0, 1))
    """
    join = Join(loads, all_links(loads, links), scan, predicates)
    return tuple(_local_order(join, i) for i in range(len(loads)))


def choose_global_order(
    loads: Sequence[StreamLoad],
    links: Links | None = None,
    scan: Scan = Scan.NLJ,
    predicates: Sequence[Predicate] = (),
) -> Order:
    """A cheap global order: the best of those that the heuristic considers (Golab section 5.1).

    It starts from the streams in ascending size of their intermediate results, and from each
    origin's own order with the origin in front; then every fast stream is tried at every
    earlier position, which makes n ** f orders of each.

    >>> choose_global_order([StreamLoad(1, 100, 50), StreamLoad(10, 100, 500)])
    (0, 1)
    """
    join = Join(loads, all_links(loads, links), scan, predicates)
    orders = _ascending_orders(join) + [(i, *_local_order(join, i)) for i in range(len(loads))]
    for stream in _fast_streams(loads):
        orders = [m for o in orders for m in _moved(o, stream, range(o.index(stream), -1, -1))]
    costs = {order: _global_cost(join, order) for order in dict.fromkeys(orders)}
    lowest = min(costs.values(), default=0.0)
    # Orders of equal cost differ by rounding errors; those must not decide.
    return next((order for order, cost in costs.items() if isclose(cost, lowest)), ())


def has_drifted(
    chosen_with: Sequence[StreamLoad], now: Sequence[StreamLoad], threshold: float = 2.0
) -> bool:
    """Whether a rate or a size has changed by more than a factor since an order was chosen.

    If so it is time to choose again (Golab section 5.4, fluctuating stream arrival rates).

    >>> has_drifted([StreamLoad(10, 60, 5)], [StreamLoad(21, 60, 5)])
    True
    """
    if threshold < 1:
        raise InputError(f"the threshold of a drift is a factor of 1 or more, got {threshold}")
    if len(chosen_with) != len(now):
        raise InputError(f"{len(chosen_with)} streams cannot be compared with {len(now)}")
    return any(
        max(before, after) > threshold * min(before, after)
        for old, new in zip(chosen_with, now, strict=True)
        for before, after in ((old.rate, new.rate), (old.size, new.size))
    )


def _global_cost(join: Join, order: Order) -> float:
    return sum(join.cost(i, others) for i, others in enumerate(orders_of(order)))


def _local_order(join: Join, origin: int) -> Order:
    """The other streams in the order that new tuples of the origin meet them, most selective first.

    The least growth per comparison comes first: (matches - 1) / work. In a nested loop
    that is the selectivity of the predicate less 1 / size, so that of two equally selective
    ones the smaller window is first. Where growth does not depend on what came before, no
    other order is cheaper (Ibaraki and Kameda, "On the Optimal Nesting Order for Computing
    N-Relational Joins", TODS 1984).
    """

    def growth_per_comparison(partial: Partial, stream: int) -> float:
        work = join.work(partial, stream)
        return (join.matches(partial, stream) - 1) / work if work else -inf

    greedy = _complete(join, (origin,), growth_per_comparison)[1:]
    return _bettered(join, origin, greedy) if len(greedy) <= MOST_BETTERED else greedy


def _bettered(join: Join, origin: int, order: Order) -> Order:
    """The order after moving single streams, always for the largest gain, until nothing is gained.

    This is for joins on several keys, where a greedy step does not see the selective predicate
    behind an unselective one.
    """
    cost = join.comparisons(origin, order)
    while True:
        places = range(len(order))
        moves = {m for stream in order for m in _moved(order, stream, places)}
        costs = {m: join.comparisons(origin, m) for m in sorted(moves) if join.allows(origin, m)}
        lowest = min(costs.values(), default=cost)
        if lowest > cost or isclose(lowest, cost):
            return order
        order, cost = min(costs, key=costs.__getitem__), lowest


def _ascending_orders(join: Join) -> list[Order]:
    """The order that starts with the smallest binary join, both ways, then by smallest result."""

    def size(pair: tuple[int, int]) -> float:
        first, second = pair
        return join.loads[first].size * join.matches(join.start(first), second)

    if len(join.loads) < 2:
        return []
    first, second = min(combinations(range(len(join.loads)), 2), key=size)
    return [_complete(join, start, join.matches) for start in ((first, second), (second, first))]


def _complete(join: Join, start: Order, preference: Preference) -> Order:
    """An order that starts as given and adds each next stream by preference, linked ones first."""
    order = list(start)
    partial = join.start(start[0])
    for stream in start[1:]:
        partial = join.extended(partial, stream)
    while left := [j for j in range(len(join.loads)) if j not in order]:
        linked = [j for j in left if join.is_linked(partial, j)]
        chosen = min(linked or left, key=lambda j: preference(partial, j))
        order.append(chosen)
        partial = join.extended(partial, chosen)
    return tuple(order)


def _fast_streams(loads: Sequence[StreamLoad]) -> list[int]:
    """The fast streams, the fastest first; only as many as keep orders within MOST_ORDERS."""
    rates = [load.rate for load in loads]
    fast = [i for i, rate in enumerate(rates) if rate > FAST * median_low(rates)]
    fast.sort(key=lambda i: -rates[i])
    starts = len(loads) + 2
    while fast and starts * len(loads) ** len(fast) > MOST_ORDERS:
        fast.pop()
    return fast


def _moved(order: Order, stream: int, places: Iterable[int]) -> list[Order]:
    """The order with one stream moved to each of these places."""
    rest = tuple(j for j in order if j != stream)
    return [(*rest[:place], stream, *rest[place:]) for place in places]
