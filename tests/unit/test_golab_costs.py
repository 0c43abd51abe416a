"""The formulas behind Golab's figures: against the cost model, and against what is counted."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nilometer.model.join_cost import Order, StreamLoad
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.general_lazy_nlj import GeneralLazyNLJ
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.naive_nlj import NaiveNLJ
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.golab.figure_3 import FAST, SLOW
from nilometer_papers.experiments.golab.loop_costs import (
    best_general_plans,
    best_lazy_plans,
    lazy_plans,
    loop_cost,
    naive_plans,
    total_cost,
)
from nilometer_papers.experiments.golab.order_tables import (
    CLOSE,
    TABLE_5,
    TABLE_6,
    TABLE_7,
    model_cost,
)
from nilometer_papers.experiments.golab.rates import run
from nilometer_papers.experiments.golab.window_samples import compared_with, draw_windows
from nilometer_papers.experiments.golab.workload import make_workload, make_workloads

SMALL = (StreamLoad(2, 20, 8), StreamLoad(1, 30, 4), StreamLoad(1, 20, 6))
"""Few tuples, so that many samples are cheap."""


@pytest.mark.parametrize("loads", [TABLE_5, TABLE_6, TABLE_7])
def test_eager_joins_with_new_tuples_on_top_cost_what_the_model_says(
    loads: tuple[StreamLoad, ...],
) -> None:
    for order in permutations(range(4)):
        cost = total_cost(loads, lazy_plans(order), None, time_tests=False)
        assert cost == pytest.approx(model_cost(loads, order))


def test_the_fast_window_belongs_last_only_without_time_tests() -> None:
    loads = [SLOW, SLOW, SLOW, FAST]
    assert best_general_plans(loads, 50)[3].index(3) == 3
    last, first = (0, 1, 2, 3), (3, 0, 1, 2)
    # by hand: (150^2 + 150^3 / 50 + 150^3 / 50^2 * 500) / 50
    assert loop_cost(loads, last, 3, 50, time_tests=False) == pytest.approx(15300)
    assert loop_cost(loads, first, 3, 50, time_tests=False) == pytest.approx(19500)
    assert loop_cost(loads, first, 3, 50, time_tests=True) == pytest.approx(10500)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_a_lazy_join_compares_is_what_the_exact_formula_says(place: int) -> None:
    tau, plans = 10, [_with_origin_at(origin, place) for origin in range(3)]
    workloads = make_workloads(SMALL, 60, 20 * 4, seed=3)

    def make(task: JoinTask) -> GeneralLazyNLJ:
        return GeneralLazyNLJ(task, plans, tau * 4)

    expected = total_cost(SMALL, plans, tau, time_tests=True)
    assert run(make, workloads).visited * 4 == pytest.approx(expected, rel=0.05)


def _with_origin_at(origin: int, place: int) -> Order:
    others = [stream for stream in range(3) if stream != origin]
    return (*others[:place], origin, *others[place:])


def test_what_the_naive_join_compares_is_what_the_formula_says() -> None:
    workloads = make_workloads(SMALL, 60, 10 * 4, seed=3)
    expected = total_cost(SMALL, naive_plans((0, 1, 2)), None, time_tests=False)
    assert run(NaiveNLJ, workloads).visited * 4 == pytest.approx(expected, rel=0.05)


def test_the_general_join_has_all_plans_that_the_lazy_one_has() -> None:
    for tau in (1, 10, 50):
        loads = [SLOW, SLOW, SLOW, FAST]
        general = total_cost(loads, best_general_plans(loads, tau), tau, time_tests=False)
        assert general <= total_cost(loads, best_lazy_plans(loads, tau), tau, time_tests=False)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_loops_compare_what_follows_from_the_values_in_the_windows(order: Order) -> None:
    workload = make_workload(SMALL, 1, seed=5)
    contents = np.zeros((1, 3, 8), np.int64)
    for one in workload.filling:
        contents[0, one.stream, one.key - 1] += 1
    counted = 0.0
    for origin, load in enumerate(SMALL):
        for value in range(1, int(load.distinct_of(0)) + 1):
            algorithm = EagerNLJ(workload.task, order)
            workload.fill(algorithm)
            algorithm.process(StreamTuple(workload.measured[0].time, value, origin, 1 << 40))
            counted += load.rate * algorithm.counters.visited / load.distinct_of(0)
    assert compared_with(order, SMALL, contents)[0] == pytest.approx(counted)


def test_windows_that_are_drawn_hold_what_the_model_says() -> None:
    contents = draw_windows(TABLE_5, 200, seed=1)
    assert contents.sum(axis=2).mean(axis=0) == pytest.approx([1000, 100, 200, 300], rel=0.02)
    held = contents.mean(axis=0)
    for stream, load in enumerate(TABLE_5):
        assert (held[stream] > 0).sum() == load.distinct_of(0)


@pytest.mark.parametrize(("sampled", "expected"), [(109.0, True), (111.0, False), (89.0, False)])
def test_the_model_is_judged_over_many_windows(sampled: float, expected: bool) -> None:
    row = {"order": "12", "model": 100.0, "counted": 300.0, "sampled": sampled, "deviation": 1.0}
    assert CLOSE.check([row]).holds == expected
