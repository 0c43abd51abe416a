"""What nested loops of TR-010 compare, by the order in which they read their streams."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.service import Service, check_same, serve
from nilometer_papers.experiments.workloads.exponential import (
    SECOND,
    Rate,
    exponential_streams,
)
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions
from nilometer_papers.experiments.workloads.turns import in_turn

WINDOW = SECOND // 5


def served(arrivals: list[StreamTuple], *names: str) -> dict[str, Service]:
    """By all algorithms, with the same results."""
    task = JoinTask.uniform(2, WINDOW)
    services = {name: serve(ALGORITHMS[name].start(task), arrivals, block=500) for name in names}
    check_same(services)
    return services


def two_streams(slow: float, tuples: int = 4000, values: int = 500) -> list[StreamTuple]:
    return exponential_streams([Rate(1000, values), Rate(slow, values)], tuples, seed=3)


def pairs_in_window(arrivals: list[StreamTuple]) -> int:
    """How many pairs of both streams lie within the window, by the definition."""
    first, second = ([one.time for one in arrivals if one.stream == i] for i in range(2))
    return sum(abs(one - other) <= WINDOW for one in first for other in second)


@pytest.mark.parametrize("slow", [1000, 300, 100, 10])
def test_in_the_order_of_time_two_nested_loops_differ_by_four_tests_to_one(slow: float) -> None:
    """MW-join compares each pair in the window, NLW-join tests its times besides, and no more."""
    arrivals = two_streams(slow)
    services, pairs = served(arrivals, "NLW", "NLW_PULLED", "MW"), pairs_in_window(arrivals)
    counted = {name: one.comparisons * len(arrivals) for name, one in services.items()}
    per_tuple = 8 * len(arrivals)
    assert pairs <= counted["MW"] <= pairs + per_tuple
    assert 3 * pairs <= counted["NLW"] <= 3 * pairs + per_tuple
    assert 4 * pairs <= counted["NLW_PULLED"] <= 4 * pairs + per_tuple
    assert counted["NLW"] <= 4 * counted["MW"]


def test_read_in_turn_nested_loops_fall_behind_without_end() -> None:
    """The slow stream runs ahead, and NLW-join scans what is ahead; MW-join lets it wait."""
    arrivals = in_turn(two_streams(100, 24_000), 2)
    services = served(arrivals, "NLW", "MW")
    loops, merge = ([one.comparisons for one in services[name].blocks] for name in ("NLW", "MW"))
    growth = [after - before for before, after in pairwise(loops)]
    assert len(growth) == 8
    assert min(growth) > 150
    assert max(merge) < 40
    assert loops[-1] > 50 * merge[-1]


def test_read_in_turn_streams_of_one_rate_stay_together() -> None:
    arrivals = in_turn(two_streams(1000, 8000), 2)
    services = served(arrivals, "NLW", "MW")
    assert services["NLW"].comparisons < 5 * services["MW"].comparisons


@pytest.mark.parametrize("largest", [1.0, 4.0])
def test_stores_sell_as_unlike_numbers_as_they_should(largest: float) -> None:
    sold = transactions(Stores(3, 3000, largest=largest), 30_000, seed=2)
    counts = [sum(one.stream == store for one in sold) for store in range(3)]
    assert counts[0] / counts[2] == pytest.approx(largest, rel=0.1)
    assert counts[1] / len(sold) == pytest.approx(1 / 3, rel=0.1)


def test_the_share_of_matching_sales_is_that_of_the_sales() -> None:
    stores = Stores(2, 3000, items=50)
    sold = transactions(stores, 4000, seed=2)
    first, second = ([one.key for one in sold if one.stream == i] for i in range(2))
    matching = sum(one == other for one in first for other in second)
    assert stores.matching == pytest.approx(matching / len(first) / len(second), rel=0.05)


@pytest.mark.parametrize(("per_hour", "sales"), [(600, 7200), (1250, 12_000)])
def test_at_comparable_rates_nested_loops_converge_as_stores_are_added(
    per_hour: float, sales: int
) -> None:
    """Figure 9(b): MW-join compares a third with two stores, and as much with six, at any rate."""
    ratios = {}
    for stores in (2, 6):
        task = JoinTask.uniform(stores, HOUR)
        arrivals = transactions(Stores(stores, per_hour), sales, seed=1)
        services = {name: serve(ALGORITHMS[name].start(task), arrivals) for name in ("NLW", "MW")}
        check_same(services)
        ratios[stores] = services["NLW"].comparisons / services["MW"].comparisons
    assert ratios[2] == pytest.approx(3, rel=0.05)
    assert 0.75 < ratios[6] < 1.35
