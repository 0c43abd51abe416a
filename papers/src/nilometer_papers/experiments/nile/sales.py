"""SalesStreams: (StoreID, ItemID, Price, Quantity), as in Nile section 6."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from nilometer_papers.algorithms.nile.pipeline import Arrival
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.workloads.exponential import SECOND, Rate, exponential_streams
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions

STORES: Final = 100
PRICES: Final = 1000
"""Prices are below this, all equally likely."""
QUANTITIES: Final = 10
ITEMS: Final = 1000

_PEAK_PER_HOUR: Final = 3600
_PEAK: Final = 1.73
"""How many times the sales of an average hour a store has in its busiest hours."""
_PEAK_BEGINS: Final = 17 * HOUR
_DAY_OF_SALES: Final = 26_000


def synthetic_sales(
    streams: int, per_second: float, items: int, tuples: int, seed: int
) -> list[Arrival]:
    """That many sales over all streams, arriving at their times."""
    rates = [Rate(per_second, items)] * streams
    return _as_sales(exponential_streams(rates, tuples, seed), seed)


def store_sales(seconds: int, seed: int) -> list[Arrival]:
    """The sales of one store, starting with its busiest hours: in bursts, about one a second."""
    store = Stores(1, per_hour=_PEAK_PER_HOUR / _PEAK)
    day = transactions(store, _DAY_OF_SALES, seed)
    end = _PEAK_BEGINS + seconds * SECOND
    return _as_sales([one for one in day if _PEAK_BEGINS <= one.time < end], seed)


def _as_sales(tuples: Iterable[StreamTuple], seed: int) -> list[Arrival]:
    """Tuples whose keys are items, with the other columns added."""
    random = Random(f"{seed} sales")
    below = random.randrange
    return [
        Arrival(time, stream, time, (below(STORES), item, below(PRICES), 1 + below(QUANTITIES)))
        for time, item, stream, _ in tuples
    ]
