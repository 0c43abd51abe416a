"""What a multi-way window join costs per unit of time, for given orders of its streams.

The cost model is that of Golab and Özsu, "Processing Sliding Window Multi-Joins in Continuous
Queries over Data Streams" (VLDB 2003), cited here as Golab. Streams are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import inf, isfinite, prod
from typing import TypeAlias

from nilometer.errors import InputError

Links: TypeAlias = Sequence[frozenset[int]]
"""The join keys: for each, the streams whose tuples must agree on it."""

Order: TypeAlias = tuple[int, ...]


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
class Predicate:
    """A condition beside the keys: it is asked of each match as soon as its streams are joined.

    Nothing is assumed about how many pass it.
    """

    streams: frozenset[int]
    cost: float
    """What it costs to ask it once, in comparisons of tuples (Golab section 5.4)."""

    def __post_init__(self) -> None:
        if not (0 < self.cost < inf):
            raise InputError(f"a predicate must cost more than zero, got {self.cost}")


@dataclass(frozen=True, slots=True)
class JoinCost:
    """Comparisons per unit of time, for the new tuples of each stream."""

    by_origin: tuple[float, ...]

    @property
    def total(self) -> float:
        """The cost of the join: the orders of the origins do not affect each other."""
        return sum(self.by_origin)


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result: its streams, how many tuples it has, and distinct values of each key."""

    streams: frozenset[int]
    tuples: float
    values: dict[int, float]


@dataclass(frozen=True)
class Join:
    """The estimates of Golab section 4.2, for a step from a partial result to one more stream.

    Values are uniform, and the smaller set of a key's values is contained in the larger. So a
    tuple of one side matches one of the other with probability 1 / max(v, w), and min(v, w)
    values of the key remain. The size of a partial result then depends on which streams are in
    it, not on their order.
    """

    loads: Sequence[StreamLoad]
    links: Links
    scan: Scan
    predicates: Sequence[Predicate] = ()

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

    def start(self, stream: int) -> Partial:
        """One tuple of a stream."""
        return Partial(frozenset({stream}), 1.0, self._values[stream])

    def is_linked(self, partial: Partial, stream: int) -> bool:
        """Whether the stream shares a key with those already joined."""
        return any(stream in self.links[key] for key in partial.values)

    def looked_at(self, partial: Partial, stream: int) -> float:
        """How many tuples of the stream's window a partial tuple is compared with.

        A window has no more hash buckets than tuples, so that no lookup hits an empty bucket.
        """
        size, hash_buckets = self.loads[stream].size, self.loads[stream].buckets
        values = self._values[stream]
        if hash_buckets is not None:
            return size / hash_buckets if values.keys() & partial.values.keys() else size
        if self.scan is Scan.NLJ:
            return size
        buckets = prod(values[key] for key in values.keys() & partial.values.keys())
        return size / max(1.0, min(buckets, size))

    def matches(self, partial: Partial, stream: int) -> float:
        """How many tuples of the stream's window match a partial tuple; all without a link."""
        values = self._values[stream]
        common = values.keys() & partial.values.keys()
        return self.loads[stream].size / prod(max(values[k], partial.values[k]) for k in common)

    def work(self, partial: Partial, stream: int) -> float:
        """What a partial tuple costs in the stream's window: comparisons, predicates of matches."""
        joined = partial.streams | {stream}
        predicate_cost = sum(
            one.cost
            for one in self.predicates
            if one.streams <= joined and not one.streams <= partial.streams
        )
        looked_at = self.looked_at(partial, stream)
        return (
            looked_at + predicate_cost * self.matches(partial, stream)
            if predicate_cost
            else looked_at
        )

    def extended(self, partial: Partial, stream: int) -> Partial:
        """The partial result with one more stream."""
        values = dict(partial.values)
        for key, count in self._values[stream].items():
            values[key] = min(count, values.get(key, inf))
        tuples = partial.tuples * self.matches(partial, stream)
        return Partial(partial.streams | {stream}, tuples, values)

    def comparisons(self, origin: int, others: Iterable[int]) -> float:
        """How many comparisons one new tuple of a stream causes."""
        partial = self.start(origin)
        comparisons = 0.0
        for stream in others:
            comparisons += partial.tuples * self.work(partial, stream)
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
    predicates: Sequence[Predicate] = (),
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
    join = Join(loads, all_links(loads, links), scan, predicates)
    return JoinCost(tuple(join.cost(i, order) for i, order in enumerate(orders)))


def all_links(loads: Sequence[StreamLoad], links: Links | None) -> Links:
    """The join keys; one that all streams share if none is given."""
    return (frozenset(range(len(loads))),) if links is None else links
