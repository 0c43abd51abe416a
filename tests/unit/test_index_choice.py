"""Hash tables in the cost model: counted comparisons agree, and the heuristics against all."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from random import Random

import pytest

from nilometer.errors import InputError
from nilometer.model import index_choice
from nilometer.model.index_choice import (
    choose_indexes,
    choose_loops,
    cost_of_indexes,
    hybrid_order,
    indexes_that_pay,
    with_indexes,
)
from nilometer.model.join_cost import StreamLoad, cost_of_orders, orders_of
from nilometer_papers.algorithms.hybrid_join import HybridJoin
from nilometer_papers.experiments.golab.workload import make_workload
from tests.unit.test_join_order import TABLE_5, TABLE_6, TABLE_7


@pytest.mark.parametrize("table", [TABLE_5, TABLE_6, TABLE_7])
def test_equal_buckets_change_no_order_only_the_cost(table: tuple[StreamLoad, ...]) -> None:
    """Golab section 5.3: the savings are the same at each for-loop."""
    hashed = with_indexes(table, frozenset(range(4)), 10)
    ratios = {
        cost_of_orders(table, orders_of(order)).total
        / cost_of_orders(hashed, orders_of(order)).total
        for order in permutations(range(4))
    }
    assert [round(ratio, 9) for ratio in ratios] == [10] * len(ratios)


def test_buckets_discount_a_window_as_a_shorter_one() -> None:
    """T_i / b_i (section 5.3): the tuples that are looked at, not those that match."""
    loads = [StreamLoad(1, 100, 50), StreamLoad(3, 60, 20), StreamLoad(2, 100, 10)]
    hashed = [loads[0], replace(loads[1], buckets=6), loads[2]]
    plain, cheaper = (cost_of_orders(one, orders_of((1, 0, 2))) for one in (loads, hashed))
    saved = [a - b for a, b in zip(plain.by_origin, cheaper.by_origin, strict=True)]
    assert saved == [pytest.approx(1 * (180 - 30)), 0, pytest.approx(2 * (180 - 30))]


def test_counted_comparisons_are_those_of_the_model_with_buckets() -> None:
    loads = [StreamLoad(1, 60, 20), StreamLoad(2, 60, 20), StreamLoad(1, 60, 20)]
    hashed = with_indexes(loads, frozenset({1, 2}), 5)
    counted = tuples = 0
    for part in range(6):
        work = make_workload(loads, 800, seed=7, part=part)
        running = HybridJoin(work.task, {1: 5, 2: 5}, order=(0, 1, 2))
        work.fill(running)
        for one in work.measured:
            running.process(one)
        counted += running.counters.visited
        tuples += len(work.measured)
    expected = cost_of_orders(hashed, orders_of((0, 1, 2))).total / 4
    assert counted / tuples == pytest.approx(expected, rel=0.15)


def test_the_choice_of_indexes_is_the_best_of_all() -> None:
    random = Random("indexes")
    for _ in range(20):
        loads = [
            StreamLoad(random.choice((1, 5, 20)), random.randint(10, 100), random.randint(2, 60))
            for _ in range(4)
        ]
        count = random.randint(0, 4)
        chosen = choose_indexes(loads, count, 10)
        cost = cost_of_indexes(loads, 10)
        assert len(chosen) == count
        assert cost(chosen) == min(cost(frozenset(one)) for one in combinations(range(4), count))


def test_many_windows_are_indexed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_choice, "MOST_CHOICES", 10)
    loads = [StreamLoad(1 + 10 * (i == 5), 50, 30) for i in range(6)]
    chosen = choose_indexes(loads, 3, 10)
    assert len(chosen) == 3
    assert 5 in chosen
    with pytest.raises(InputError, match="0 or more"):
        choose_indexes(loads, -1, 10)


def test_the_windows_where_a_table_pays_are_those_of_counted_work() -> None:
    """The oldest tuple of each bucket is looked at when tuples expire: at every arrival."""
    loads = [StreamLoad(20, 60, 5), StreamLoad(1, 5, 5), StreamLoad(1, 5, 5)]
    chosen = indexes_that_pay(loads, 10, sweeps=22)
    every = [frozenset(one) for n in range(4) for one in combinations(range(3), n)]
    counted = {one: _counted(loads, one) for one in every}
    assert chosen == min(counted, key=counted.__getitem__) == {0}
    assert indexes_that_pay(loads, 10, sweeps=0) == {0, 1, 2}
    assert indexes_that_pay(loads, 10, sweeps=0, links=[frozenset({0, 1})]) == {0, 1}


def _counted(loads: list[StreamLoad], chosen: frozenset[int]) -> int:
    """Tuples compared and buckets looked into, with hash tables on some windows."""
    work = make_workload(loads, 1500, seed=3)
    order = choose_loops(with_indexes(loads, chosen, 10))
    running = HybridJoin(work.task, dict.fromkeys(chosen, 10), order)
    work.fill(running)
    for one in work.measured:
        running.process(one)
    counters = running.counters
    looks = counters.time_tests - 2 * counters.visited - counters.removed
    return counters.visited + looks


def test_windows_with_hash_tables_are_in_the_inner_loops() -> None:
    loads = [StreamLoad(i + 1, 100, 50, buckets=4 if i % 2 else None) for i in range(4)]
    order = hybrid_order(loads)
    assert set(order[:2]) == {0, 2}


def test_a_hash_table_has_a_bucket() -> None:
    with pytest.raises(InputError, match="one bucket or more"):
        StreamLoad(1, 100, 10, buckets=0)
