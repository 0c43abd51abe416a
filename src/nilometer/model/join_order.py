"""Join orders: what a multi-way window join costs per unit of time, and which order is cheap.

The cost model and the heuristics are those of Golab and Özsu, "Processing Sliding Window
Multi-Joins in Continuous Queries over Data Streams" (VLDB 2003), cited here as Golab.
Streams are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import combinations
from math import inf, isclose, isfinite, prod
from statistics import median_low
from typing import Final, TypeAlias

from nilometer.errors import InputError

Links: TypeAlias = Sequence[frozenset[int]]
"""The join keys: for each, the streams whose tuples must agree on it."""

Order: TypeAlias = tuple[int, ...]

FAST: Final = 1.5
"""A stream is fast if its rate is more than this many times the (lower) median of the rates."""

MOST_ORDERS: Final = 2000
"""How many global orders are costed; among many streams only the fastest few are moved."""

MOST_BETTERED: Final = 8
"""How many streams an order that is improved may have; the time grows with the cube."""


class Scan(Enum):
    """What a partial tuple is compared with in the next window."""

    NLJ = "nested loop"
    """Every tuple of the window (Golab section 3.2)."""
    HASH = "hash"
    """One bucket of the window, with a bucket for every distinct key (Golab section 3.4)."""


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """One stream as the cost model sees it: lambda_i, T_i and v_i (Golab table 1).

    Where streams are joined on several keys, ``distinct`` has a number for each of them (the
    number for a key that the stream does not have is ignored). A window that does not slide is
    unbounded, and ``rows`` says how many rows it holds.

    >>> StreamLoad(rate=10, window=100, distinct=500).size
    1000
    """

    rate: float
    """Tuples per unit of time."""
    window: float
    """The length of the window, in the same unit of time."""
    distinct: float | tuple[float, ...]
    rows: float | None = None
    buckets: float | None = None
    """b_i, the hash buckets of the window, if it has a fixed number of them (Golab section 5.3)."""
    test_cost: float = 1.0
    """The cost of the predicate on a tuple of this window, in comparisons (Golab section 5.4)."""

    def __post_init__(self) -> None:
        if not (0 <= self.rate < inf):
            raise InputError(f"the rate of a stream must be finite, 0 or more, got {self.rate}")
        if not self.window > 0:
            raise InputError(f"the window of a stream must be longer than 0, got {self.window}")
        if not (isfinite(self.size) and self.size >= 0):
            raise InputError(
                "a window must hold a finite number of tuples, 0 or more",
                detail=f"got rate {self.rate}, window {self.window}, rows {self.rows}",
                hint="say how many rows an unbounded window holds: StreamLoad.of_table(rows, …)",
            )
        values = self.distinct if isinstance(self.distinct, tuple) else (self.distinct,)
        if not all(1 <= v < inf for v in values):
            raise InputError(f"there must be at least one distinct value, got {self.distinct}")
        if self.buckets is not None and not self.buckets >= 1:
            raise InputError(f"a hash table has one bucket or more, got {self.buckets}")
        if not (0 < self.test_cost < inf):
            raise InputError(f"a test must cost more than zero, got {self.test_cost}")

    @classmethod
    def of_table(cls, rows: float, distinct: float | tuple[float, ...]) -> StreamLoad:
        """A table that does not change while streams are joined with it."""
        return cls(0.0, inf, distinct, rows)

    @property
    def size(self) -> float:
        """How many tuples the window holds."""
        return self.rate * self.window if self.rows is None else self.rows

    def distinct_of(self, key: int) -> float:
        """How many distinct values of a key the window has."""
        return self.distinct[key] if isinstance(self.distinct, tuple) else self.distinct


@dataclass(frozen=True, slots=True)
class JoinCost:
    """Comparisons per unit of time, for the new tuples of each stream."""

    by_origin: tuple[float, ...]

    @property
    def total(self) -> float:
        """The cost of the join: the orders of the origins do not affect each other."""
        return sum(self.by_origin)


@dataclass(frozen=True, slots=True)
class _Partial:
    """A partial result: how many tuples it has, and how many distinct values of each key so far."""

    tuples: float
    values: dict[int, float]


@dataclass(frozen=True)
class _Join:
    """The estimates of Golab section 4.2, for a step from a partial result to one more stream.

    Values are uniform, and the smaller set of a key's values is contained in the larger. So a
    tuple of one side matches one of the other with probability 1 / max(v, w), and min(v, w)
    values of the key remain. The size of a partial result then depends on which streams are in
    it, not on their order.
    """

    loads: Sequence[StreamLoad]
    links: Links
    scan: Scan

    def __post_init__(self) -> None:
        known = frozenset(range(len(self.loads)))
        for streams in self.links:
            if not streams <= known:
                raise InputError(
                    f"a join key names streams that are not there: {sorted(streams - known)}",
                    detail=f"there are {len(known)} streams, numbered from 0",
                )
        for i, load in enumerate(self.loads):
            if isinstance(load.distinct, tuple) and len(load.distinct) != len(self.links):
                raise InputError(
                    f"stream {i} must give its distinct values for each of {len(self.links)} "
                    f"join keys, got {len(load.distinct)}"
                )

    def start(self, stream: int) -> _Partial:
        """One tuple of a stream."""
        return _Partial(1.0, self._values[stream])

    def is_linked(self, partial: _Partial, stream: int) -> bool:
        """Whether the stream shares a key with those already joined."""
        return any(stream in self.links[key] for key in partial.values)

    def looked_at(self, partial: _Partial, stream: int) -> float:
        """How many tuples of the stream's window a partial tuple is compared with.

        A window has no more hash buckets than tuples, so that no lookup hits an empty bucket.
        """
        size, given = self.loads[stream].size, self.loads[stream].buckets
        values = self._values[stream]
        if given is not None:
            return size / given if values.keys() & partial.values.keys() else size
        if self.scan is Scan.NLJ:
            return size
        buckets = prod(values[key] for key in values.keys() & partial.values.keys())
        return size / max(1.0, min(buckets, size))

    def matches(self, partial: _Partial, stream: int) -> float:
        """How many tuples of the stream's window match a partial tuple; all without a link."""
        values = self._values[stream]
        common = values.keys() & partial.values.keys()
        return self.loads[stream].size / prod(max(values[k], partial.values[k]) for k in common)

    def extended(self, partial: _Partial, stream: int) -> _Partial:
        """The partial result with one more stream."""
        values = dict(partial.values)
        for key, count in self._values[stream].items():
            values[key] = min(count, values.get(key, inf))
        return _Partial(partial.tuples * self.matches(partial, stream), values)

    def comparisons(self, origin: int, others: Iterable[int]) -> float:
        """How many comparisons one new tuple of a stream causes."""
        partial = self.start(origin)
        comparisons = 0.0
        for stream in others:
            looked_at = self.looked_at(partial, stream)
            comparisons += partial.tuples * looked_at * self.loads[stream].test_cost
            partial = self.extended(partial, stream)
        return comparisons

    def cost(self, origin: int, others: Iterable[int]) -> float:
        """The comparisons per unit of time that new tuples of one stream cause."""
        return self.loads[origin].rate * self.comparisons(origin, others)

    def allows(self, origin: int, others: Order) -> bool:
        """Whether no stream is joined without a link while another could be joined with one."""
        partial = self.start(origin)
        for place, stream in enumerate(others):
            later = others[place + 1 :]
            if not self.is_linked(partial, stream) and any(
                self.is_linked(partial, other) for other in later
            ):
                return False
            partial = self.extended(partial, stream)
        return True

    @cached_property
    def _values(self) -> list[dict[int, float]]:
        """For each stream, how many distinct values its keys have."""
        return [
            {key: load.distinct_of(key) for key, linked in enumerate(self.links) if i in linked}
            for i, load in enumerate(self.loads)
        ]


Preference: TypeAlias = Callable[[_Partial, int], float]
"""How soon a stream should be joined to a partial result: the lowest value first."""


def orders_of(global_order: Sequence[int]) -> tuple[Order, ...]:
    """For each origin of new tuples, the other streams in the global order (Golab table 4).

    >>> orders_of((0, 1, 2))
    ((1, 2), (0, 2), (0, 1))
    """
    return tuple(tuple(j for j in global_order if j != i) for i in range(len(global_order)))


def cost_of_orders(
    loads: Sequence[StreamLoad],
    orders: Sequence[Sequence[int]],
    links: Links | None = None,
    scan: Scan = Scan.NLJ,
) -> JoinCost:
    """What each origin's order costs, in comparisons per unit of time (Golab section 4.2).

    New tuples of stream i (rate_i of them) pass through the windows j of their order; in each,
    every partial tuple is compared with all of it (or with one bucket), and the matches go
    on: ``sum over j of partial_j * size_j``, where ``partial`` grows by
    ``size_j / max(v_j, least v so far)`` at each window. Without links all streams share one key.

    >>> loads = [StreamLoad(10, 100, 500), StreamLoad(1, 100, 50), StreamLoad(1, 200, 40)]
    >>> cost_of_orders(loads, orders_of((0, 1, 2))).by_origin
    (1400.0, 1400.0, 1200.0)
    """
    for i, order in enumerate(orders):
        if sorted((i, *order)) != list(range(len(loads))):
            raise InputError(
                f"the order of stream {i} must name every other stream once, got {tuple(order)}"
            )
    if len(orders) != len(loads):
        raise InputError(f"there must be an order for each of {len(loads)} streams")
    join = _Join(loads, _all_links(loads, links), scan)
    return JoinCost(tuple(join.cost(i, order) for i, order in enumerate(orders)))


def choose_orders(
    loads: Sequence[StreamLoad], links: Links | None = None, scan: Scan = Scan.NLJ
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
    join = _Join(loads, _all_links(loads, links), scan)
    return tuple(_local_order(join, i) for i in range(len(loads)))


def choose_global_order(
    loads: Sequence[StreamLoad], links: Links | None = None, scan: Scan = Scan.NLJ
) -> Order:
    """A cheap global order: the best of those that the heuristic considers (Golab section 5.1).

    It starts from the streams in ascending size of their intermediate results, and from each
    origin's own order with the origin in front; then every fast stream is tried at every
    earlier position, which makes n ** f orders of each.

    >>> choose_global_order([StreamLoad(1, 100, 50), StreamLoad(10, 100, 500)])
    (0, 1)
    """
    join = _Join(loads, _all_links(loads, links), scan)
    orders = _ascending_orders(join) + [(i, *_local_order(join, i)) for i in range(len(loads))]
    for stream in _fast_streams(loads):
        orders = [m for o in orders for m in _moved(o, stream, range(o.index(stream), -1, -1))]
    costs = {order: _global_cost(join, order) for order in dict.fromkeys(orders)}
    least = min(costs.values(), default=0.0)
    # Orders of equal cost differ by rounding errors; those must not decide.
    return next((order for order, cost in costs.items() if isclose(cost, least)), ())


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


def _all_links(loads: Sequence[StreamLoad], links: Links | None) -> Links:
    return (frozenset(range(len(loads))),) if links is None else links


def _global_cost(join: _Join, order: Order) -> float:
    return sum(join.cost(i, others) for i, others in enumerate(orders_of(order)))


def _local_order(join: _Join, origin: int) -> Order:
    """The other streams in the order that new tuples of the origin meet them, most selective first.

    The least growth per comparison comes first: (matches - 1) / looked at. In a nested loop
    that is the selectivity of the predicate less 1 / size, so that of two equally selective
    ones the smaller window is first. Where growth does not depend on what came before, no
    other order is cheaper (Ibaraki and Kameda, "On the Optimal Nesting Order for Computing
    N-Relational Joins", TODS 1984).
    """

    def growth_per_comparison(partial: _Partial, stream: int) -> float:
        looked_at = join.looked_at(partial, stream) * join.loads[stream].test_cost
        return (join.matches(partial, stream) - 1) / looked_at if looked_at else -inf

    greedy = _complete(join, (origin,), growth_per_comparison)[1:]
    return _bettered(join, origin, greedy) if len(greedy) <= MOST_BETTERED else greedy


def _bettered(join: _Join, origin: int, order: Order) -> Order:
    """The order after moving single streams, always for the largest gain, until nothing is gained.

    This is for joins on several keys, where a greedy step does not see the selective predicate
    behind an unselective one.
    """
    cost = join.comparisons(origin, order)
    while True:
        places = range(len(order))
        moves = {m for stream in order for m in _moved(order, stream, places)}
        costs = {m: join.comparisons(origin, m) for m in sorted(moves) if join.allows(origin, m)}
        least = min(costs.values(), default=cost)
        if least > cost or isclose(least, cost):
            return order
        order, cost = min(costs, key=costs.__getitem__), least


def _ascending_orders(join: _Join) -> list[Order]:
    """The order that starts with the smallest binary join, both ways, then by smallest result."""

    def size(pair: tuple[int, int]) -> float:
        first, second = pair
        return join.loads[first].size * join.matches(join.start(first), second)

    if len(join.loads) < 2:
        return []
    first, second = min(combinations(range(len(join.loads)), 2), key=size)
    return [_complete(join, start, join.matches) for start in ((first, second), (second, first))]


def _complete(join: _Join, start: Order, preference: Preference) -> Order:
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
