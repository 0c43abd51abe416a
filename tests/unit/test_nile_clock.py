"""Under a clock TPA and NTA tell a change when it happens, though nothing arrives; ITA does not."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from nilometer.errors import InputError
from nilometer_papers.algorithms.nile.answer import AnswerOperator, Change, Output
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline, Scheduling
from nilometer_papers.algorithms.nile.select import Select
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from nilometer_papers.algorithms.nile.w_aggregate import WAggregate
from nilometer_papers.algorithms.nile.w_join import WJoin
from nilometer_papers.experiments.nile.load import respond
from nilometer_papers.experiments.nile.queries import q1
from nilometer_papers.experiments.nile.sales import store_sales
from tests.nile_plans import Node, evaluate, fold, generate_inputs, generate_plan, key, operator

ON_TIME = (Approach.TPA, Approach.NTA)


def arrivals(random: Random) -> list[Arrival]:
    """Two streams that are stamped as they arrive."""
    given = [one._replace(clock=one.time) for one in generate_inputs(random)]
    return sorted(given, key=lambda one: one.clock)


def start(plan: Node, approach: Approach) -> Pipeline:
    return Pipeline(AnswerOperator(operator(plan)), approach, lambda: 0, Scheduling.CLOCK)


@pytest.mark.parametrize("approach", Approach)
def test_answers_are_those_of_the_plain_query_at_every_instant(approach: Approach) -> None:
    random, compared = Random("clock"), 0
    for _ in range(40):
        plan, given = generate_plan(random, random.randint(1, 3)), arrivals(random)
        running = start(plan, approach)
        running.replay(given)
        running.finish()
        inputs = [(one.stream, one.time, one.values) for one in given]
        for at in range(-1, max((one.time for one in given), default=0) + 22):
            expected = evaluate(plan, inputs, at)
            assert fold(running.changes, at) == expected, (plan, at)
            compared += expected.total()
    assert compared > 100


@pytest.mark.parametrize("approach", ON_TIME)
def test_every_change_comes_out_at_its_instant(approach: Approach) -> None:
    random, count = Random("instants"), 0
    for _ in range(40):
        plan, given = generate_plan(random, random.randint(1, 2)), arrivals(random)
        running = start(plan, approach)
        running.replay(given)
        last = max((one.time for one in given), default=0)
        at_once, in_the_end = Counter[Change](), Counter[Change]()
        for change, clock in zip(running.changes, running.clocks, strict=True):
            if 0 <= change.instant < last:
                row = change._replace(sign=1)
                in_the_end[row] += change.sign
                at_once[row] += change.sign if clock == change.instant else 0
        assert {k: v for k, v in at_once.items() if v} == {k: v for k, v in in_the_end.items() if v}
        count += len(+in_the_end)
    assert count > 100


def total() -> WAggregate:
    return WAggregate(Select(StreamScan(0, 10), lambda values: values[0] > 4), [("SUM", key)])


FEW = [Arrival(0, 0, 0, (5,)), Arrival(3, 0, 3, (7,)), Arrival(100, 0, 100, (1,))]


@pytest.mark.parametrize(
    ("approach", "clocks"),
    [(Approach.ITA, []), (Approach.TPA, [11, 14]), (Approach.NTA, [11, 14])],
)
def test_sums_go_down_while_a_stream_is_silent(approach: Approach, clocks: list[int]) -> None:
    output = Output(total())
    running = Pipeline(output, approach, lambda: 0, Scheduling.CLOCK)
    running.replay(FEW)
    sums = [
        (clock, change.values[0])
        for change, clock in zip(running.changes, running.clocks, strict=True)
        if change.sign > 0 and change.instant > 3
    ]
    assert sums == list(zip(clocks, (7, None), strict=False))


def test_tpa_probes_only_for_what_expires() -> None:
    """Two tuples are stored, so there are two probes, where without a clock every pause is one."""
    probes = {}
    for scheduling in (Scheduling.CLOCK, Scheduling.ARRIVALS):
        output = Output(total())
        running = Pipeline(output, Approach.TPA, lambda: 0, scheduling)
        running.replay([*FEW, *(Arrival(t, 0, t, (1,)) for t in range(101, 120))])
        probes[scheduling] = running.operators[0].counters.probes
    assert probes == {Scheduling.CLOCK: 2, Scheduling.ARRIVALS: 23}


def test_an_output_keeps_nothing_and_knows_when_rows_end() -> None:
    join = WJoin(StreamScan(0, 10), StreamScan(1, 10), (key, key))
    output = Output(join)
    running = Pipeline(output, Approach.TPA, lambda: 0, Scheduling.CLOCK)
    running.replay([Arrival(0, 0, 0, ("a",)), Arrival(4, 1, 4, ("a",)), Arrival(50, 0, 50, ("b",))])
    assert [(one.instant, one.sign) for one in output.changes] == [(4, 1)]
    assert [(one.instant, one.sign) for one in output.implied] == [(11, -1)]


def test_times_of_their_own_are_refused_under_a_clock() -> None:
    running = Pipeline(Output(total()), Approach.TPA, lambda: 0, Scheduling.CLOCK)
    with pytest.raises(InputError, match="has the time of its arrival"):
        running.replay([Arrival(5, 0, 3, (1,))])


SECOND = 1_000_000
WINDOW = 120 * SECOND


def average_ms(selectivity: float, scheduling: Scheduling) -> dict[str, float]:
    """Response times of Figure 12 by approach, on a machine that takes no time at all."""
    sales = store_sales(600, seed=1)
    since = sales[0].time + WINDOW
    responses = respond(q1(WINDOW, selectivity), sales, since, 0, scheduling)
    assert all(float(one["changes"]) > 100 * selectivity for one in responses.values())
    return {name: float(one["average_ms"]) for name, one in responses.items()}


@pytest.mark.parametrize("selectivity", [0.2, 0.4, 0.6, 0.8, 1.0])
def test_where_time_moves_with_arrivals_all_are_the_same_without_filtering(
    selectivity: float,
) -> None:
    """But TPA is never ten times better: at most 1 / selectivity times."""
    averages = average_ms(selectivity, Scheduling.ARRIVALS)
    assert averages["NTA"] == averages["TPA"] > 0
    assert averages["TPA"] <= averages["ITA"] <= averages["TPA"] / selectivity
    if selectivity == 1:
        assert averages["ITA"] == averages["TPA"]


@pytest.mark.parametrize("selectivity", [0.2, 1.0])
def test_with_a_clock_ita_waits_for_the_next_tuple_also_without_filtering(
    selectivity: float,
) -> None:
    """TPA and NTA tell an expiration at once; ITA is as late as where time moves with arrivals."""
    averages = average_ms(selectivity, Scheduling.CLOCK)
    assert averages["TPA"] == averages["NTA"] == 0
    assert averages["ITA"] == average_ms(selectivity, Scheduling.ARRIVALS)["ITA"] > 0
