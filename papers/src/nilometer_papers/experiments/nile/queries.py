"""The five workload queries of Nile section 6, as plans of its operators and as SQL.

The paper's Figure 9, which shows them, is lost in the text we have: these match what the text says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Values
from nilometer_papers.algorithms.nile.project import Project
from nilometer_papers.algorithms.nile.select import Select
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from nilometer_papers.algorithms.nile.table_join import TableJoin
from nilometer_papers.algorithms.nile.w_aggregate import WAggregate
from nilometer_papers.algorithms.nile.w_distinct import WDistinct
from nilometer_papers.algorithms.nile.w_group_by import WGroupBy
from nilometer_papers.algorithms.nile.w_join import WJoin
from nilometer_papers.experiments.nile.sales import ITEMS, PRICES, STORES

FAVOURITES: Final = 0.1
"""The share of items, and of stores, that are favourites: the selectivity of joins with them."""
SELECTIVITY: Final = 0.25
"""The selectivity of the selections of Q1 and Q4."""
Q4_JOIN: Final = 0.6
Q5_JOIN: Final = 0.1

FAVOURITE_STORES: Final = [(store,) for store in range(int(STORES * FAVOURITES))]


@dataclass(frozen=True)
class Query:
    """A query, before it runs."""

    name: str
    plan: Callable[[], Operator]
    """A new plan, which reads the streams 0, 1…"""
    sql: str
    """The same query over the streams S0, S1… and the tables of favourites."""
    streams: int = 1
    items: int = ITEMS
    """How many items there must be for the intended selectivity."""

    @property
    def statement(self) -> str:
        """Its SQL, for changes of the answer."""
        return f"{self.sql} EMIT CHANGES"


def q1(window: int, selectivity: float = SELECTIVITY) -> Query:
    """SUM after a selection."""
    highest = round(PRICES * selectivity)

    def plan() -> Operator:
        return WAggregate(Select(StreamScan(0, window), _cheaper(highest)), [("SUM", _sales)])

    sql = f"SELECT SUM(price * quantity) AS total FROM {_stream(0, window)} WHERE price < {highest}"
    return Query("Q1", plan, sql)


def q2(window: int, per_second: float) -> Query:
    """DISTINCT after a join with the favourite items.

    There are as many items as sales in the window: with fewer, nearly all would always be in it.
    """
    items = round(per_second * window / 1_000_000)

    def plan() -> Operator:
        joined = TableJoin(StreamScan(0, window), _item, favourite_items(items), _first)
        return WDistinct(Project(joined, lambda values: values[1:2]))

    sql = (
        f"SELECT DISTINCT S0.item FROM {_stream(0, window)}, FavoriteItems F WHERE S0.item = F.item"
    )
    return Query("Q2", plan, sql, items=items)


def q3(window: int) -> Query:
    """GROUP BY after a join with the favourite stores."""

    def plan() -> Operator:
        joined = TableJoin(StreamScan(0, window), _first, FAVOURITE_STORES, _first)
        return WGroupBy(joined, lambda values: values[:1], [("SUM", _sales)])

    sql = (
        f"SELECT S0.store, SUM(price * quantity) AS total FROM {_stream(0, window)}, "
        "FavoriteStores F WHERE S0.store = F.store GROUP BY S0.store"
    )
    return Query("Q3", plan, sql)


def q4(window: int, per_second: float) -> Query:
    """W-join of two streams after selections, under one window."""
    highest = round(PRICES * SELECTIVITY)
    stored = per_second * SELECTIVITY * window / 1_000_000

    def plan() -> Operator:
        inputs = [Select(StreamScan(i, window), _cheaper(highest)) for i in range(2)]
        joined = WJoin(inputs[0], inputs[1], (_item, _item))
        return Project(joined, lambda values: (values[1], values[0], values[4]))

    sql = (
        f"SELECT S0.item, S0.store, S1.store AS other FROM {_stream(0, window)}, "
        f"{_stream(1, window)} WHERE S0.item = S1.item AND S0.price < {highest} "
        f"AND S1.price < {highest}"
    )
    return Query("Q4", plan, sql, 2, _items(stored, Q4_JOIN))


def q5(windows: tuple[int, int], per_second: float, selectivity: float = Q5_JOIN) -> Query:
    """MAX over a W-join under two windows."""
    stored = per_second * sum(windows) / 2 / 1_000_000

    def plan() -> Operator:
        joined = WJoin(StreamScan(0, windows[0]), StreamScan(1, windows[1]), (_item, _item))
        return WAggregate(joined, [("MAX", _sales)])

    sql = (
        f"SELECT MAX(S0.price * S0.quantity) AS most FROM {_stream(0, windows[0])}, "
        f"{_stream(1, windows[1])} WHERE S0.item = S1.item"
    )
    return Query("Q5", plan, sql, 2, _items(stored, selectivity))


def favourite_items(items: int) -> list[Values]:
    """The favourites among this many items."""
    return [(item,) for item in range(int(items * FAVOURITES))]


def _stream(number: int, window: int) -> str:
    return f"S{number} [RANGE {window} MICROSECONDS]"


def _items(stored: float, selectivity: float) -> int:
    """How many items give a tuple as many partners among those stored as the selectivity says."""
    return max(1, round(stored / selectivity))


def _cheaper(highest: int) -> Callable[[Values], bool]:
    return lambda values: values[2] < highest


def _first(values: Values) -> Any:
    return values[0]


def _item(values: Values) -> Any:
    return values[1]


def _sales(values: Values) -> Any:
    return values[2] * values[3]
