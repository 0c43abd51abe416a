"""Golab's joins over time windows: the paper's example, all options, what windows hold, costs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

import pytest

from nilometer.model.join_cost import Scan, StreamLoad, cost_of_orders, orders_of
from nilometer_papers.algorithms.conditions import LinkedKeys, Where
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.general_lazy_nlj import GeneralLazyNLJ
from nilometer_papers.algorithms.hybrid_condition import EqualAmong
from nilometer_papers.algorithms.hybrid_join import HybridJoin
from nilometer_papers.algorithms.in_time_order import InTimeOrder
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, run
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.lazy_nlj import LazyNLJ
from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.naive_nlj import NaiveNLJ
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from nilometer_papers.experiments.golab.workload import make_workload
from tests import naive
from tests.arrivals import Case, generate
from tests.cases import Row

Make = Callable[[JoinTask, Random], MultiwayJoin]


def order(task: JoinTask, random: Random) -> list[int]:
    return random.sample(range(task.streams), task.streams)


def orders(task: JoinTask, random: Random) -> list[list[int]]:
    return [order(task, random) for _ in range(task.streams)]


def buckets(task: JoinTask, random: Random) -> list[int]:
    return [random.randint(1, 7) for _ in range(task.streams)]


def some_buckets(task: JoinTask, random: Random) -> dict[int, int]:
    return {i: n for i, n in enumerate(buckets(task, random)) if random.random() < 0.6}


def tau(random: Random) -> int:
    return random.choice((1, 2, 3, 5, 8, 30, 200))


EAGER: dict[str, Make] = {
    "naive": lambda task, r: NaiveNLJ(task, order(task, r)),
    "eager": lambda task, r: EagerNLJ(task, order(task, r)),
    "hash": lambda task, r: MultiwayHashJoin(task, buckets(task, r), order(task, r)),
    "hybrid": lambda task, r: HybridJoin(task, some_buckets(task, r), order(task, r)),
}

LAZY: dict[str, Make] = {
    "naive, lazy": lambda task, r: NaiveNLJ(task, order(task, r), tau(r)),
    "eager, expires lazily": lambda task, r: EagerNLJ(task, order(task, r), tau(r)),
    "lazy": lambda task, r: LazyNLJ(task, order(task, r), tau(r)),
    "general": lambda task, r: GeneralLazyNLJ(task, orders(task, r), tau(r)),
    "hash, lazy": lambda task, r: MultiwayHashJoin(task, buckets(task, r), order(task, r), tau(r)),
    "hybrid, lazy": lambda task, r: HybridJoin(task, some_buckets(task, r), order(task, r), tau(r)),
}

ALL = EAGER | LAZY


def numbers(results: list[Result]) -> list[tuple[int, ...]]:
    return sorted(tuple(one.number for one in result) for result in results)


def times(results: list[Result]) -> list[tuple[int, ...]]:
    return sorted(tuple(one.time for one in result) for result in results)


def streams_at(*lines: list[int]) -> list[StreamTuple]:
    """Tuples of streams at these times, all of one key, in the order that Golab assumes."""
    tuples = [StreamTuple(t, 1, i, n) for i, line in enumerate(lines) for n, t in enumerate(line)]
    return sorted(tuples, key=lambda one: (one.time, one.stream))


TABLE_2 = streams_at([90, 100], [150, 180], [195, 205])


@pytest.mark.parametrize("name", ALL)
def test_the_papers_example_gives_the_correct_results_of_table_3(name: str) -> None:
    for seed in range(10):
        algorithm = ALL[name](JoinTask.per_stream([100, 100, 100]), Random(seed))
        assert times(run(algorithm, TABLE_2)) == [(100, 150, 195), (100, 180, 195)]


def test_the_lazy_naive_join_verifies_what_its_windows_still_hold() -> None:
    algorithm = NaiveNLJ(JoinTask.per_stream([100, 100, 100]), every=210)
    assert [result for one in TABLE_2 for result in algorithm.process(one)] == []
    held = [[one.time for one in window.lists[0]] for window in algorithm.windows]
    assert len(list(product(*held))) == 8  # the incorrect results of table 3
    # the next arrival passes the end of the interval, time 210
    assert times(algorithm.process(StreamTuple(211, 2, 0, 2))) == [
        (100, 150, 195),
        (100, 180, 195),
    ]


@pytest.mark.parametrize("name", ALL)
def test_orders_intervals_and_buckets_change_no_result(name: str) -> None:
    random = Random(f"options of {name}")
    for _ in range(60):
        case = generate(random, Windows.PER_STREAM)
        algorithm = InTimeOrder(ALL[name](case.task, random))
        assert numbers(run(algorithm, case.arrivals)) == case.expected


def close(one: StreamTuple, other: StreamTuple) -> bool:
    """Not transitive, and not symmetric: each pair must be tested, in the streams' order."""
    assert isinstance(one.key, int)
    assert isinstance(other.key, int)
    return -1 <= other.key - one.key <= 2


@pytest.mark.parametrize("name", [one for one in ALL if not one.startswith("hash")])
def test_conditions_other_than_equal_keys_hold_for_every_pair(name: str) -> None:
    random = Random(f"conditions of {name}")
    for _ in range(40):
        case = generate(random, Windows.PER_STREAM)
        count = case.task.streams
        equal = frozenset(random.sample(range(count), random.randint(2, count)))
        condition = EqualAmong(equal, close) if name.startswith("hybrid") else Where(close)
        task = JoinTask(case.task.network, condition)
        among = set(equal) if name.startswith("hybrid") else set()
        made = _hybrid(task, random, name) if among else ALL[name](task, random)
        assert numbers(run(InTimeOrder(made), case.arrivals)) == _expected(case, among)


def _hybrid(task: JoinTask, random: Random, name: str) -> HybridJoin:
    assert isinstance(task.condition, EqualAmong)
    hashed = {i: random.randint(1, 7) for i in task.condition.streams if random.random() < 0.7}
    every = tau(random) if "lazy" in name else None
    return HybridJoin(task, hashed, order(task, random), every)


def _expected(case: Case, equal: set[int]) -> list[tuple[int, ...]]:
    def fits(rows: tuple[Row, ...]) -> bool:
        pairs = [(i, j) for j in range(len(rows)) for i in range(j)]
        keys = [row[1] for row in rows]
        return all(
            keys[i] == keys[j] if {i, j} <= equal else -1 <= keys[j] - keys[i] <= 2
            for i, j in pairs
        )

    rows = [[(one.time, one.key, 0, one.number) for one in line] for line in case.streams]
    return naive.window_join(rows, case.task.network, keyed=False, test=fits)


def test_a_window_with_a_table_for_each_key_expires_after_a_restart() -> None:
    condition = LinkedKeys((frozenset({0, 1}), frozenset({1, 2})))
    task = JoinTask.per_stream([10, 10, 10], condition)
    before, after = HybridJoin(task), HybridJoin(task)
    for number, key in enumerate([(1, 5), (1, 5), (0, 5), (0, 6)]):
        before.process(StreamTuple(number, key, 1, number))
    after.load(before.save())
    assert after.save() == before.save()
    after.process(StreamTuple(12, (3, None), 0, 4))
    lists = [[one.time for one in tuples] for tuples in after.windows[1].lists if tuples]
    assert lists == [[2, 3], [2], [3]]


@pytest.mark.parametrize("name", EAGER)
def test_eager_expiration_leaves_nothing_older_than_the_window(name: str) -> None:
    random, held = Random(f"expiration of {name}"), 0
    for _ in range(30):
        case = generate(random, Windows.PER_STREAM)
        algorithm = EAGER[name](case.task, random)
        for arrival in _in_time(case):
            algorithm.process(arrival)
            held += _check_ages(algorithm, arrival.time)
    assert held > 1000


@pytest.mark.parametrize("name", ["naive", "eager", "lazy", "general", "hash", "hybrid"])
@pytest.mark.parametrize("every", [1, 3, 10])
def test_lazy_expiration_leaves_nothing_older_than_the_window_at_the_last_clean_up(
    name: str, every: int
) -> None:
    make: dict[str, Callable[[JoinTask], MultiwayJoin]] = {
        "naive": lambda task: NaiveNLJ(task, every=every),
        "eager": lambda task: EagerNLJ(task, expire_every=every),
        "lazy": lambda task: LazyNLJ(task, every=every),
        "general": lambda task: GeneralLazyNLJ(task, every=every),
        "hash": lambda task: MultiwayHashJoin(task, every=every),
        "hybrid": lambda task: HybridJoin(task, every=every),
    }
    random, held = Random(f"clean-up of {name}"), 0
    for _ in range(15):
        case = generate(random, Windows.PER_STREAM)
        algorithm = make[name](case.task)
        for arrival in _in_time(case):
            algorithm.process(arrival)
            cleaned = (arrival.time - 1) // every * every
            held += _check_ages(algorithm, cleaned)
    assert held > 300


def _in_time(case: Case) -> list[StreamTuple]:
    return sorted(case.arrivals, key=lambda one: (one.time, one.stream, one.number))


def _check_ages(algorithm: MultiwayJoin, now: int) -> int:
    """How many tuples the windows hold, none of them older than its window at an instant."""
    lengths, held = algorithm.task.stream_windows, 0
    assert lengths is not None
    for window, length in zip(algorithm.windows, lengths, strict=True):
        for tuples in window.lists:
            held += len(tuples)
            assert all(one.time >= now - length for one in tuples)
    return held


@pytest.mark.parametrize("name", ["LAZY_NLJ", "GENERAL_NLJ"])
def test_a_lazy_join_waits_for_its_interval_but_not_after_streams_say_they_passed(
    name: str,
) -> None:
    task = JoinTask.per_stream([100, 100])  # so tau is 10
    algorithm, counts = ALGORITHMS[name].start(task), []
    for one in streams_at([1, 3, 11, 12], [2, 4, 10, 13]):
        counts.append(len(algorithm.process(one)))
        saved, algorithm = algorithm.save(), ALGORITHMS[name].start(task)
        algorithm.load(saved)
    # 11 is the first that comes after the interval, and waits for 13 to come in order
    assert counts == [0, 0, 0, 0, 0, 0, 0, 6]
    assert len(algorithm.reach(0, 14)) == 10


def test_what_expired_before_a_tuple_came_does_not_join_it() -> None:
    # as Golab quotes the binary join: scan, insert, and only then invalidate
    task = JoinTask.per_stream([10, 10])
    for algorithm in (NaiveNLJ(task), EagerNLJ(task), EagerNLJ(task, expire_every=100)):
        assert times(run(algorithm, streams_at([0, 1], [11]))) == [(1, 11)]


def test_a_tuple_on_the_border_of_an_interval_is_joined_once() -> None:
    # [NOW - tau, NOW] is closed at both ends in the paper: 5 and 10 would belong to two intervals
    arrivals = streams_at([3, 5, 10], [4, 7, 12])
    for algorithm in _lazy_joins(JoinTask.per_stream([9, 9]), every=5):
        assert len(run(algorithm, arrivals)) == 9


def test_tuples_of_equal_times_find_each_other_once() -> None:
    # u.ts <= k.ts holds in both directions: each would find the other as the older one
    arrivals = streams_at([4, 4], [4], [4, 4])
    for algorithm in _lazy_joins(JoinTask.per_stream([9, 0, 9]), every=5):
        assert len(run(algorithm, arrivals)) == 4


def _lazy_joins(task: JoinTask, every: int) -> list[JoinAlgorithm]:
    last_first = [list(reversed(range(task.streams)))] * task.streams
    return [
        NaiveNLJ(task, every=every),
        LazyNLJ(task, every=every),
        GeneralLazyNLJ(task, last_first, every),
        MultiwayHashJoin(task, every=every),
        HybridJoin(task, every=every),
    ]


def test_the_hash_join_looks_back_by_the_window_not_by_the_rate_times_the_window() -> None:
    # the paper subtracts lambda * T, a number of tuples, from a time: 3 * 10 here
    task = JoinTask.per_stream([10, 10])
    arrivals = streams_at([0, 1, 1, 1, 2, 2, 2], [12])
    assert times(run(MultiwayHashJoin(task, every=1000), arrivals)) == [(2, 12)] * 3


LOADS = (StreamLoad(4, 25, 20), StreamLoad(1, 50, 10), StreamLoad(2, 30, 5))


@pytest.mark.parametrize("plan", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_comparisons_are_those_of_the_cost_model(plan: tuple[int, ...]) -> None:
    workload = make_workload(LOADS, 7000, seed=1)
    units = len(workload.measured) / workload.unit
    distinct = [int(load.distinct_of(0)) for load in LOADS]
    for scan, algorithm in (
        (Scan.NLJ, EagerNLJ(workload.task, plan)),
        (Scan.HASH, MultiwayHashJoin(workload.task, distinct, plan)),
    ):
        run(workload.fill(algorithm), workload.measured)
        predicted = cost_of_orders(LOADS, orders_of(plan), scan=scan).total
        assert algorithm.counters.visited / units == pytest.approx(predicted, rel=0.05)
        # windows hold nothing that has expired, so all that is visited is in time
        assert algorithm.counters.value_tests == algorithm.counters.visited
