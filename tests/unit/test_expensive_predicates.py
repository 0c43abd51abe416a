"""Conditions in Python are asked of few rows: their cost counts for the order of a join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.errors import InputError
from nilometer.local.database import LocalDatabase
from nilometer.model.join_cost import Predicate, StreamLoad, cost_of_orders, orders_of
from nilometer.model.join_order import choose_global_order, choose_orders
from nilometer.sql.catalog import Statistics
from nilometer.sql.explain.explain_plan import explain_plan

SECOND = 1_000_000
STATEMENT = (
    "SELECT A.v, B.v, C.v FROM A, B, C WINDOW = 10 S "
    "WHERE A.k = B.k AND B.k = C.k AND alike(A.v, C.v)"
)
RATES = {"A": 5.0, "B": 8.0, "C": 10.0}


def test_it_is_asked_near_the_top() -> None:
    """Golab section 5.4: in an inner loop it is asked again for every partial result."""
    loads = [StreamLoad(1, 100, 10)] * 3
    dear = [Predicate(frozenset({0, 2}), 50)]
    assert choose_orders(loads)[0] == (1, 2)
    assert choose_orders(loads, predicates=dear)[0] == (2, 1)
    assert choose_global_order(loads, predicates=dear)[-1] == 1
    with pytest.raises(InputError, match="must cost more than zero"):
        Predicate(frozenset({0, 2}), 0)


def test_it_is_asked_of_matches_once_its_streams_are_joined() -> None:
    loads = [StreamLoad(1, 100, 10), StreamLoad(1, 200, 10), StreamLoad(1, 300, 10)]
    plain = cost_of_orders(loads, orders_of((0, 1, 2)))
    dear = cost_of_orders(loads, orders_of((0, 1, 2)), predicates=[Predicate(frozenset({0, 2}), 7)])
    added = [b - a for a, b in zip(plain.by_origin, dear.by_origin, strict=True)]
    assert added == pytest.approx([7 * 20 * 30, 7 * 10 * 30, 7 * 10])


class Alike:
    """A function that counts the rows it is asked of."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, left: int, right: int) -> bool:
        self.asked += 1
        return (left + right) % 7 > 0


def database(cost: float | None) -> tuple[LocalDatabase, Alike]:
    made, alike = LocalDatabase(), Alike()
    for number, (name, rate) in enumerate(RATES.items()):
        count = int(rate * 20)
        random = np.random.default_rng(number)
        rows = {
            "ts": pa.array(np.arange(count) * (20 * SECOND // count), pa.timestamp("us", "UTC")),
            "k": random.integers(0, 20, count),
            "v": random.integers(0, 100, count),
        }
        stated = Statistics(rate, {"k": 20.0})
        made.create_stream(name, pa.table(rows), time="ts", statistics=stated)
    made.create_function("alike", alike, pa.bool_(), by_row=True, cost=cost)
    return made, alike


def test_a_function_with_a_cost_is_asked_of_fewer_rows() -> None:
    cheap, asked_if_cheap = database(cost=0.001)
    usual, asked = database(cost=None)
    assert "  new A  B, C  (" in explain_plan(cheap.plan(STATEMENT))
    assert "  new A  C, B  (" in explain_plan(usual.plan(STATEMENT))
    first, second = (one.sql(STATEMENT).to_pylist() for one in (cheap, usual))
    assert first
    assert sorted(map(str, first)) == sorted(map(str, second))
    assert asked.asked < 0.6 * asked_if_cheap.asked


@pytest.mark.parametrize(("cost", "order"), [(None, (2, 1)), (0.001, (1, 2))])
def test_the_cost_counts_when_orders_are_chosen_again(
    cost: float | None, order: tuple[int, int]
) -> None:
    usual, _ = database(cost)
    query = usual.query(STATEMENT)
    query.restart()
    query.feed(
        {name: repeated(rows, 3 if name == "C" else 1) for name, rows in usual.tables.items()}
    )
    orders = query.stage.buckets[0].operator.orders
    assert [round(load["rate"]) for load in orders.to_json()["loads"]] == [5, 8, 30]
    assert orders.orders[0] == order


def repeated(rows: pa.RecordBatch, times: int) -> pa.RecordBatch:
    return rows.take(pa.array(np.repeat(np.arange(len(rows)), times)))


def test_what_is_wrong_with_a_cost() -> None:
    with pytest.raises(InputError, match="the cost of function alike is above 0, got -1"):
        database(cost=-1)
