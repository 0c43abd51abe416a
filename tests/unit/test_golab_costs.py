"""The formulas behind Golab's figures: against the cost model, and against what is counted."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nilometer.model.join_cost import Order, StreamLoad
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.general_lazy_nlj import GeneralLazyNLJ
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.naive_nlj import NaiveNLJ
from nilometer_papers.algorithms.sliding_window import ScannedWindow
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from nilometer_papers.experiments.golab.figure_3 import FAST, SLOW
from nilometer_papers.experiments.golab.loop_costs import (
    best_general_plans,
    best_lazy_plans,
    best_naive_plans,
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
from nilometer_papers.experiments.service import check_same

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


class UntestedLoops(MultiwayJoin):
    """For-loops that pass on whatever matches, old or new, and check the times of results only."""

    def __init__(self, task: JoinTask, plans: list[Order], every: int) -> None:
        super().__init__(task, [ScannedWindow() for _ in plans], every, lazy=True)
        self._plans = plans

    def _join(self, origin: int, new: list[StreamTuple]) -> list[Result]:
        partials = [(one,) for one in self._held(self._plans[origin][0], origin, new)]
        for stream in self._plans[origin][1:]:
            held = self._held(stream, origin, new)
            self.counters.visited += len(partials) * len(held)
            partials = [(*some, one) for some in partials for one in held if one.key == some[0].key]
        ordered = (tuple(sorted(one, key=lambda member: member.stream)) for one in partials)
        return [one for one in ordered if self._in_time(one, origin)]

    def _held(self, stream: int, origin: int, new: list[StreamTuple]) -> list[StreamTuple]:
        return new if stream == origin else list(self.windows[stream].lists[0])

    def _in_time(self, result: Result, origin: int) -> bool:
        time = result[origin].time
        return all(
            time - self._lengths[one.stream] <= one.time <= time - (one.stream > origin)
            for one in result
            if one.stream != origin
        )


BEST = {"NAIVE": best_naive_plans, "LAZY": best_lazy_plans, "GENERAL": best_general_plans}


def counted_costs(tau: int, parts: int, time_tests: bool) -> dict[str, float]:
    """Comparisons per unit of time under the best plans; all three give the same results."""
    loads, join = [SLOW, SLOW, SLOW, FAST], GeneralLazyNLJ if time_tests else UntestedLoops
    plans = {name: best(loads, tau, time_tests) for name, best in BEST.items()}
    workloads = make_workloads(loads, parts, max(tau, 5) * 13, seed=1)
    runs = {
        name: run(lambda task, one=one: join(task, one, tau * 13), workloads)
        for name, one in plans.items()
    }
    tested = run(lambda task: GeneralLazyNLJ(task, None, tau * 13), workloads)
    check_same({"tested": tested.service, **{name: one.service for name, one in runs.items()}})
    return {name: one.visited * 13 for name, one in runs.items()}


def test_figure_3b_is_what_loops_without_time_tests_compare() -> None:
    """They are executed: GENERAL is best, NAIVE nearly so if tau is large and worst if small."""
    few, many = counted_costs(1, 4, time_tests=False), counted_costs(50, 4, time_tests=False)
    assert few["NAIVE"] > 2 * few["LAZY"]
    assert few["LAZY"] == pytest.approx(few["GENERAL"], rel=0.02)
    assert many["GENERAL"] < 0.97 * many["LAZY"]
    assert many["GENERAL"] <= many["NAIVE"] <= 1.1 * many["GENERAL"]
    assert many["NAIVE"] < many["LAZY"]


def test_figure_3b_is_not_what_loops_with_time_tests_compare() -> None:
    few, many = counted_costs(1, 4, time_tests=True), counted_costs(50, 4, time_tests=True)
    assert few["NAIVE"] > 2 * few["LAZY"]
    assert many["GENERAL"] == pytest.approx(many["LAZY"], rel=0.01)
    assert many["NAIVE"] > 1.1 * many["LAZY"]


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
