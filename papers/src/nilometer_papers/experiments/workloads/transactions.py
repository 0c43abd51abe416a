"""Sales of stores as streams, in place of the papers' Wal-Mart logs, which are not public.

What the papers say about those logs is kept: one stream per store, a tuple per item sold, opening
hours from 7:30 to 20:00, about 5000 transactions an hour over all stores. The rest is ours:
rush hours, baskets of several items within seconds, Zipf items, whole seconds as in a log.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, count, islice, pairwise
from random import Random
from typing import Final

from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.workloads.exponential import SECOND

HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR

_HOUR_SECONDS: Final = 3600
_DAY_SECONDS: Final = 24 * _HOUR_SECONDS
_OPENS: Final = 7.5
_CLOSES: Final = 20.0
_RUSH_HOURS: Final = ((12.0, 13.5, 2.0), (17.0, 19.0, 2.5))
"""From, to, and the number of customers as a multiple of a quiet hour's."""
_MOST: Final = max(times for _, _, times in _RUSH_HOURS)
_BASKET: Final = 5
"""Items that a customer buys on average."""
_SLOWEST_SCAN: Final = 4
"""Two items of a basket are fewer than this many seconds apart."""


@dataclass(frozen=True)
class Stores:
    """How many stores sell how much of what."""

    stores: int
    per_hour: float = 5000
    """Transactions per opening hour of all stores together, on average."""
    items: int = 20_000
    skew: float = 0.5
    """The exponent of the Zipf distribution of items."""
    largest: float = 1
    """How many times as much the first store sells as the last; from one to the next in even steps.

    All together sell the same."""

    def sales_of(self, store: int) -> float:
        """What one of them sells in an hour.

        >>> [Stores(3, 600, largest=3).sales_of(store) for store in range(3)]
        [300.0, 200.0, 100.0]
        """
        sizes = [self._size(one) for one in range(self.stores)]
        return self.per_hour * sizes[store] / sum(sizes)

    @property
    def matching(self) -> float:
        """The share of a store's sales that are of the same item as a sale of another's."""
        ends = _zipf(self.items, self.skew)
        parts = (last - first for first, last in pairwise([0, *ends]))
        return sum((part / ends[-1]) ** 2 for part in parts)

    def _size(self, store: int) -> float:
        step = (self.largest - 1) / max(1, self.stores - 1)
        return self.largest - step * store


def transactions(stores: Stores, tuples: int, seed: int) -> list[StreamTuple]:
    """That many sales over all stores, in time order; the key is the item."""
    lines = [_sales(stores, store, seed) for store in range(stores.stores)]
    return list(islice(heapq.merge(*lines, key=lambda one: one.time), tuples))


def _sales(stores: Stores, store: int, seed: int) -> Iterator[StreamTuple]:
    """The sales of one store, day after day."""
    random, number = Random(f"{seed} store {store}"), 0
    shares = _zipf(stores.items, stores.skew)
    for day in count():
        times = sorted(_day(random, stores.sales_of(store)))
        sold = random.choices(range(stores.items), cum_weights=shares, k=len(times))
        for second, item in zip(times, sold, strict=True):
            time = (day * _DAY_SECONDS + second) * SECOND
            yield StreamTuple(time, item, store, number)
            number += 1


def _day(random: Random, per_hour: float) -> Iterator[int]:
    """The seconds of a day at which a store sells an item."""
    quiet = per_hour / _BASKET / _mean_rush()
    hour = _OPENS
    while (hour := hour + random.expovariate(quiet * _MOST)) < _CLOSES:
        if random.random() * _MOST < _rush(hour):
            yield from _basket(random, int(hour * _HOUR_SECONDS))


def _basket(random: Random, second: int) -> Iterator[int]:
    """The items of one customer, in quick succession, none after the store has closed."""
    while second < _CLOSES * _HOUR_SECONDS:
        yield second
        if random.random() < 1 / _BASKET:
            return
        second += random.randrange(_SLOWEST_SCAN)


def _rush(hour: float) -> float:
    """The number of customers at an hour of the day, as a multiple of a quiet hour's."""
    return next((times for start, end, times in _RUSH_HOURS if start <= hour < end), 1.0)


def _mean_rush() -> float:
    extra = sum((end - start) * (times - 1) for start, end, times in _RUSH_HOURS)
    return 1 + extra / (_CLOSES - _OPENS)


@cache
def _zipf(items: int, skew: float) -> list[float]:
    """Cumulative weights of items: the k-th weighs k to the power of minus the skew."""
    return list(accumulate(k**-skew for k in range(1, items + 1)))
