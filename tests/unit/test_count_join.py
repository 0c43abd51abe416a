"""Golab's join of count-based windows, against all combinations of last rows there are."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from nilometer_papers.algorithms import count_join
from nilometer_papers.algorithms.conditions import Where
from nilometer_papers.algorithms.count_join import CountNLJ
from nilometer_papers.algorithms.in_time_order import InTimeOrder
from nilometer_papers.algorithms.join_algorithm import run
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from tests.arrivals import Case, generate

ENTRY = ALGORITHMS["COUNT_NLJ"]


def naive_results(case: Case) -> list[Result]:
    """At every instant: what the last rows of all streams give that has a member of that time."""
    rows, results = case.task.rows, []
    assert rows is not None
    for now in sorted({one.time for one in case.arrivals}):
        last = [
            [one for one in line if one.time <= now][-count:]
            for line, count in zip(case.streams, rows, strict=True)
        ]
        results += [
            result
            for result in product(*last)
            if max(one.time for one in result) == now
            and all(
                case.task.condition.among(result[:i], [result[i]]) for i in range(1, len(result))
            )
        ]
    return results


def numbers(results: list[Result]) -> list[tuple[int, ...]]:
    return sorted(tuple(one.number for one in result) for result in results)


def cases(seed: str, count: int = 40) -> list[Case]:
    random = Random(seed)
    return [generate(random, Windows.ROWS) for _ in range(count)]


def test_results_are_those_of_the_last_rows_each_once() -> None:
    count = 0
    for case in cases("results"):
        algorithm = ENTRY.start(case.task)
        results = run(algorithm, case.arrivals)
        assert numbers(results) == numbers(naive_results(case))
        assert all(one.stream == i for result in results for i, one in enumerate(result))
        assert algorithm.counters.results == len(results)
        assert algorithm.counters.tuples == len(case.arrivals)
        count += len(results)
    assert count > 300


def test_orders_and_intervals_change_no_result() -> None:
    random = Random("options")
    for case in cases("options"):
        order = random.sample(range(case.task.streams), case.task.streams)
        algorithm = InTimeOrder(CountNLJ(case.task, order, random.choice((1, 2, 5, 30, 200))))
        assert numbers(run(algorithm, case.arrivals)) == numbers(naive_results(case))


def test_counters_may_go_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_join, "CIRCLE", 16)
    for case in cases("circles"):
        assert numbers(run(ENTRY.start(case.task), case.arrivals)) == numbers(naive_results(case))


def test_other_conditions_hold_for_every_pair() -> None:
    condition = Where(lambda one, other: (one.key, other.key) != (0, 1))
    for case in cases("conditions", 15):
        other = Case(JoinTask.last_rows(case.task.rows or (), condition), case.arrivals)
        assert numbers(run(ENTRY.start(other.task), other.arrivals)) == numbers(
            naive_results(other)
        )


def test_saving_and_loading_changes_nothing() -> None:
    random = Random("restarts")
    for case in cases("restarts", 20):
        algorithm, results = ENTRY.start(case.task), []
        for arrival in case.arrivals:
            results += algorithm.process(arrival)
            if random.random() < 0.2:
                successor = ENTRY.start(case.task)
                successor.load(algorithm.save())
                algorithm = successor
        assert numbers(results + algorithm.finish()) == numbers(naive_results(case))


def test_results_come_when_all_streams_have_passed_them_and_not_before() -> None:
    random = Random("clocks")
    for case in cases("clocks", 20):
        algorithm = ENTRY.start(case.task)
        cut = random.randint(0, len(case.arrivals))
        results = [one for arrival in case.arrivals[:cut] for one in algorithm.process(arrival)]
        rest = [[one.time for one in case.arrivals[cut:] if one.stream == i] for i in range(6)]
        reached = [min(rest[i], default=10_000) for i in range(case.task.streams)]
        for stream, time in enumerate(reached):
            results += algorithm.reach(stream, time)
        expected = [
            one for one in naive_results(case) if max(part.time for part in one) < min(reached)
        ]
        assert numbers(results) == numbers(expected)


def test_windows_hold_the_last_rows_and_what_waits() -> None:
    for case in cases("windows", 20):
        algorithm = CountNLJ(case.task)
        assert case.task.rows is not None
        for arrival in sorted(case.arrivals, key=lambda one: (one.time, one.stream, one.number)):
            algorithm.process(arrival)
            for window, rows in zip(algorithm.windows, case.task.rows, strict=True):
                waiting = sum(one.time == arrival.time for one in window.tuples)
                assert len(window.tuples) <= rows + waiting


def joined(rows: list[int], *lines: list[int], every: int = 1) -> list[tuple[int, ...]]:
    """The times of all results of streams at these times, all of one key."""
    tuples = [StreamTuple(t, 1, i, n) for i, line in enumerate(lines) for n, t in enumerate(line)]
    arrivals = sorted(tuples, key=lambda one: (one.time, one.stream))
    results = run(CountNLJ(JoinTask.last_rows(rows), every=every), arrivals)
    return sorted(tuple(one.time for one in result) for result in results)


def test_a_window_of_two_rows_has_two_rows() -> None:
    # with cnt >= tmp.cnt - C, as the paper's pseudo-code has it, the tuple of time 1 would join
    assert joined([2, 2], [1, 2, 3], [4]) == [(2, 4), (3, 4)]


def test_rows_later_than_the_new_tuple_are_not_in_its_window() -> None:
    # the pseudo-code has no upper bound: 2 would find 3 as an older tuple, and 3 find 2
    assert joined([1, 1], [1, 3], [2], every=10) == [(1, 2), (3, 2)]


def test_a_tuple_that_one_of_the_same_time_replaces_joins_nothing() -> None:
    assert joined([1, 1], [4, 4], [4]) == [(4, 4)]
    assert joined([1, 1], [1], [4, 4]) == [(1, 4)]


def test_what_waits_replaces_nothing_yet() -> None:
    algorithm = CountNLJ(JoinTask.last_rows([1, 1]), every=100)
    emitted = [
        algorithm.process(StreamTuple(*one)) for one in ((5, 1, 1, 0), (6, 1, 0, 0), (7, 1, 0, 1))
    ]
    emitted.append(algorithm.reach(0, 3))
    assert emitted == [[]] * 4
    assert numbers(algorithm.finish()) == [(0, 0), (1, 0)]
