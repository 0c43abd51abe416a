"""Join orders of a running join: as declared first, chosen again when rates drift."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from nilometer.local.run_query import LocalQuery
from nilometer.sql.catalog import Statistics
from tests.cases import SCHEMA

STATEMENT = "SELECT A.id, B.id, C.id FROM A, B, C WINDOW = 10 SECONDS WHERE A.k = B.k AND B.k = C.k"
SECOND = 1_000_000


def rows(count: int, keys: int, first: int = 0) -> pa.RecordBatch:
    """So many rows in the ten seconds from `first` on."""
    numbers = np.arange(count)
    times = (first * SECOND + numbers * (10 * SECOND // count)).astype("int64")
    columns = [pa.array(times).cast(SCHEMA.types[0]), numbers % keys, numbers, numbers]
    return pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=SCHEMA)


@pytest.fixture
def query() -> LocalQuery:
    """B is declared to be slow, C fast."""
    db = LocalDatabase()
    for name, rate in (("A", 10.0), ("B", 10.0), ("C", 1000.0)):
        stated = Statistics(rate, {"k": 50.0})
        db.create_stream(name, SCHEMA.empty_table(), time="ts", statistics=stated)
    return db.query(STATEMENT)


def orders(query: LocalQuery) -> tuple[tuple[int, ...], ...]:
    return query.stage.buckets[0].operator.orders.orders


def test_declared_rates_decide_first(query: LocalQuery) -> None:
    assert orders(query)[0] == (1, 2)
    assert query.plan.orders == orders(query)


def test_orders_stay_while_rates_are_near_what_was_declared(query: LocalQuery) -> None:
    query.feed({"A": rows(90, 50), "B": rows(110, 50), "C": rows(9000, 50)})
    assert orders(query)[0] == (1, 2)


def test_orders_follow_rates_that_drift(query: LocalQuery) -> None:
    query.feed({"A": rows(100, 50), "B": rows(5000, 50), "C": rows(100, 50)})
    assert orders(query)[0] == (2, 1)
    assert orders(query)[1] == (0, 2)


def test_few_rows_say_nothing_about_rates(query: LocalQuery) -> None:
    query.feed({"A": rows(50, 50), "B": rows(5000, 50), "C": rows(60, 50)})
    assert orders(query)[0] == (1, 2)


def test_distinct_values_are_counted_when_orders_are_chosen(query: LocalQuery) -> None:
    query.feed({"A": rows(500, 500), "B": rows(500, 2), "C": rows(500, 500)})
    assert [round(v) for (v,) in distinct(query)] == [500, 2, 500]


def distinct(query: LocalQuery) -> list[list[float]]:
    saved = query.stage.buckets[0].operator.orders.to_json()
    return [load["distinct"] for load in saved["loads"]]


def test_orders_survive_a_restart(query: LocalQuery) -> None:
    query.feed({"A": rows(100, 50), "B": rows(5000, 50), "C": rows(100, 50)})
    query.restart()
    assert orders(query)[0] == (2, 1)


def test_results_do_not_depend_on_orders(query: LocalQuery) -> None:
    given = {"A": rows(100, 50), "B": rows(700, 50), "C": rows(100, 50)}
    first = query.feed(given)
    later = query.feed({name: rows(100, 50, first=9) for name in given})
    assert len(first) == 100 * 14 * 2
    assert len(later) > 0
