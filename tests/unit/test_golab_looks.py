"""What buckets save and what looking into them for old tuples costs, by counts (Golab Figure 4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pytest

from nilometer.model.join_order import StreamLoad
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.experiment import Profile, Row, Setting
from nilometer_papers.experiments.golab import figure_4b
from nilometer_papers.experiments.golab.looks import (
    BY_MODEL,
    CLAIMS,
    COSTS,
    EAGER,
    EQUAL,
    FIVE,
    TABLES,
    TEN,
    allowed,
    best,
    cost_by_tau,
    count,
    counts,
    least_cost,
    limit,
    measure,
    shares,
)
from nilometer_papers.experiments.golab.order_tables import TABLE_5
from nilometer_papers.experiments.golab.workload import make_workload
from nilometer_papers.experiments.measured import select


class LookedInto(tuple[deque[StreamTuple], ...]):
    """Buckets that count how often all of them are gone through, as `expire` does."""

    times = 0

    def __iter__(self) -> Iterator[deque[StreamTuple]]:
        self.times += 1
        return super().__iter__()


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return measure(Setting(Profile.QUICK))


@pytest.mark.parametrize(
    ("loads", "number", "case", "at", "tau"),
    [
        (figure_4b.LOADS, figure_4b.allot(12, 1), TABLES, 12, figure_4b.TAU),
        (TABLE_5, [5] * 4, "HASH5", EAGER, EAGER),
        (TABLE_5, [5] * 4, "HASH5", 10, 10),
        (TABLE_5, [1] * 4, "NLJ", 5, 5),
    ],
)
def test_all_buckets_are_looked_into_at_each_expiration(
    rows: list[Row], loads: Sequence[StreamLoad], number: list[int], case: str, at: int, tau: int
) -> None:
    workload = make_workload(loads, 200 * round(sum(one.rate for one in loads)), seed=1)
    algorithm = MultiwayHashJoin(workload.task, number, every=tau * workload.unit or None)
    workload.fill(algorithm)
    buckets = [LookedInto(window.lists) for window in algorithm.windows]
    for window, lists in zip(algorithm.windows, buckets, strict=True):
        window.lists = lists
    for one in workload.measured:
        algorithm.process(one)
    looks = sum(one.times * len(one) for one in buckets) / len(workload.measured)
    (row,) = select(rows, case=case, at=at)
    assert looks == pytest.approx(float(row["looks"]), rel=0.15)


@pytest.mark.parametrize(("look", "fewer"), [(0, False), (1, False), (100, False), (260, True)])
def test_the_best_table_is_small_only_if_looks_cost_hundreds(
    rows: list[Row], look: float, fewer: bool
) -> None:
    assert (best(rows, TABLES, look) <= 8) == fewer
    assert look > 1 or best(rows, TABLES, look) == 14


def test_the_best_intervals_of_the_paper_say_that_looks_cost_tens(rows: list[Row]) -> None:
    ranges = allowed(rows)
    assert list(ranges) == ["HASH2", "HASH10", "HASH30"]
    assert all(1 < first <= last < 60 for first, last in ranges.values())
    assert all(claim.check(rows).holds for claim in CLAIMS)


def test_at_equal_averages_all_strategies_look_into_as_many_buckets(rows: list[Row]) -> None:
    """So what a look costs cannot tell '5 to slow' and '10 to slow' apart."""
    looks = {(row["at"], row["looks"]) for case in (EQUAL, TABLES, FIVE, TEN)
             for row in select(rows, case=case)}  # fmt: skip
    assert len(looks) == 20


def test_ten_to_slow_compares_less_than_five_to_slow_from_ten_buckets_on(rows: list[Row]) -> None:
    five, ten = counts(rows, FIVE), counts(rows, TEN)
    assert {at: ten[at] < five[at] for at in ten} == {at: at >= 10 for at in range(8, 21)}


@pytest.mark.parametrize("largest", [14, 20])
def test_five_to_slow_never_costs_less_than_equal_tables(rows: list[Row], largest: int) -> None:
    drawn = [row for row in rows if row["case"] in (EQUAL, FIVE) and int(row["at"]) <= largest]
    for look in COSTS:
        assert least_cost(drawn, EQUAL, look) < least_cost(drawn, FIVE, look)


def test_the_fast_window_should_have_about_twice_the_buckets_of_a_slow_one(
    rows: list[Row],
) -> None:
    counted = shares(rows)
    assert pytest.approx(2.2, abs=0.1) == BY_MODEL
    assert 1.5 < min(counted, key=counted.__getitem__) < 3
    assert counted[6.6] > 1.2 * counted[1.0]


def test_allotting_more_to_the_fast_window_saves_a_little_where_it_is_about_twice(
    rows: list[Row],
) -> None:
    equal, ten = counts(rows, EQUAL), counts(rows, TEN)
    saved = {at: 1 - ten[at] / equal[at] for at in ten}
    assert all(0 < saved[at] < 0.15 for at in range(11, 15))
    assert saved[8] < saved[9] < 0
    assert saved[20] < 0


@pytest.mark.parametrize(("case", "expected"), [("NLJ", 12), ("HASH5", 0.48)])
def test_a_longer_interval_of_table_8_costs_more_if_looks_are_cheap(
    rows: list[Row], case: str, expected: float
) -> None:
    assert limit(rows, case) == pytest.approx(expected, rel=0.1)
    eager, five, ten = cost_by_tau(rows, case, 0.9 * limit(rows, case))
    assert eager < five < ten
    eager, five, ten = cost_by_tau(rows, case, 1.1 * limit(rows, case))
    assert five < eager
    assert five < ten


def test_a_hash_join_with_one_bucket_compares_what_nested_loops_do() -> None:
    workload = make_workload(TABLE_5, 150, seed=1)
    loops = workload.fill(EagerNLJ(workload.task))
    for one in workload.measured:
        loops.process(one)
    counted = count(TABLE_5, [1] * 4, EAGER, 10, seed=1)
    assert counted == loops.counters.visited / len(workload.measured)
