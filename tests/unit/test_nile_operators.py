"""Nile's pipelines answer what the plain query does, at every instant, under ITA, TPA and NTA."""

from __future__ import annotations

from random import Random

import pytest

from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival
from nilometer_papers.algorithms.nile.stateful import Stateful
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from tests.nile_plans import (
    SETS,
    Node,
    evaluate,
    fold,
    generate_inputs,
    generate_plan,
    pipeline,
    scan,
)

CASES = 10
ON_TIME = (Approach.TPA, Approach.NTA)
ONE, TWO = (scan(0, 5), scan(1, 5)), (scan(0, 6), scan(1, 3))

PLANS = {
    "scan": ONE[0],
    "select": Node("select", ONE[:1], 1),
    "project": Node("project", ONE[:1]),
    "table": Node("table", ONE[:1]),
    "distinct": Node("distinct", ONE[:1]),
    "distinct of a projection": Node("distinct", (Node("project", ONE[:1]),)),
    "distinct of minus": Node(
        "distinct", (Node("project", (Node("minus", (scan(0, 9), scan(1, 4))),)),)
    ),
    "SUM": Node("aggregate", (Node("select", ONE[:1], 2),), ("SUM",)),
    "all": Node("aggregate", ONE[:1], ("COUNT", "SUM", "AVG", "MIN", "MAX")),
    **{f"group {f}": Node("group", ONE[:1], f) for f in ("COUNT", "SUM", "AVG", "MIN", "MAX")},
    **{
        f"{kind}, {name}": Node(kind, inputs)
        for kind in ("join", *SETS)
        for name, inputs in (("one window", ONE), ("two windows", TWO))
    },
    "group of minus": Node("group", (Node("minus", TWO),), "MAX"),
    "Q1": Node("aggregate", (Node("select", ONE[:1], 1),), ("SUM",)),
    "Q2": Node("distinct", (Node("project", (Node("table", ONE[:1]),)),)),
    "Q3": Node("group", (Node("table", ONE[:1]),), "SUM"),
    "Q4": Node("join", (Node("select", ONE[:1], 1), ONE[1])),
    "Q5": Node("aggregate", (Node("join", TWO),), ("MAX",)),
}


def instants(arrivals: list[Arrival]) -> range:
    times = [one.time for one in arrivals]
    return range(-1, max(times, default=0) + 22)


def check(plan: Node, arrivals: list[Arrival], approach: Approach) -> int:
    """Compare every answer; how many rows were compared."""
    running = pipeline(plan, approach)
    running.replay(arrivals)
    running.finish()
    inputs = [(one.stream, one.time, one.values) for one in arrivals]
    compared = 0
    for at in instants(arrivals):
        expected = evaluate(plan, inputs, at)
        assert fold(running.changes, at) == expected, (plan, approach, at)
        compared += expected.total()
    return compared


def check_each_step(plan: Node, arrivals: list[Arrival], approach: Approach) -> None:
    """What has come out is right before the answer's clock, and under TPA and NTA all is out."""
    running = pipeline(plan, approach)
    answer = running.operators[-1]
    scans = [one for one in running.operators if isinstance(one, StreamScan)]
    inputs = [(one.stream, one.time, one.values) for one in arrivals]
    expected = {at: evaluate(plan, inputs, at) for at in instants(arrivals)}
    assert isinstance(answer, Stateful)
    for arrival in arrivals:
        running.replay([arrival])
        clock = answer.local_clock if approach is Approach.ITA else min(s.time for s in scans)
        assert answer.local_clock <= min(one.time for one in scans)
        for at, rows in expected.items():
            if at < clock:
                assert fold(running.changes, at) == rows, (plan, approach, at)


@pytest.mark.parametrize("approach", Approach)
@pytest.mark.parametrize("name", PLANS)
def test_the_answer_at_every_instant_is_that_of_the_plain_query(
    name: str, approach: Approach
) -> None:
    random, compared = Random(f"operators {name}"), 0
    for _ in range(CASES):
        compared += check(PLANS[name], generate_inputs(random), approach)
    assert compared > CASES


@pytest.mark.parametrize("approach", Approach)
def test_operators_of_any_kind_follow_each_other(approach: Approach) -> None:
    random, compared = Random("plans"), 0
    for _ in range(80):
        plan = generate_plan(random, random.randint(2, 4))
        compared += check(plan, generate_inputs(random), approach)
    assert compared > 80


@pytest.mark.parametrize("approach", Approach)
@pytest.mark.parametrize("name", PLANS)
def test_answers_that_are_emitted_are_right_and_on_time_but_for_ita(
    name: str, approach: Approach
) -> None:
    random = Random(f"steps {name}")
    for _ in range(4):
        check_each_step(PLANS[name], generate_inputs(random), approach)


def test_under_tpa_operators_of_any_kind_are_on_time() -> None:
    random = Random("plans on time")
    for _ in range(60):
        plan = generate_plan(random, random.randint(2, 3))
        check_each_step(plan, generate_inputs(random), Approach.TPA)


@pytest.mark.parametrize("approach", ON_TIME)
@pytest.mark.parametrize("kind", ["join", "distinct", "minus", "intersect", "group"])
def test_nothing_that_expired_is_stored(kind: str, approach: Approach) -> None:
    random = Random(f"stored {kind}")
    for _ in range(20):
        windows = random.randint(0, 9), random.randint(0, 9)
        below = (scan(0, windows[0]), scan(1, windows[1]))
        plan = Node(kind, below if kind in ("join", *SETS) else below[:1], "SUM")
        running, arrivals = pipeline(plan, approach), generate_inputs(random)
        scans = [one for one in running.operators if isinstance(one, StreamScan)]
        stateful = next(one for one in running.operators if isinstance(one, Stateful))
        for number, arrival in enumerate(arrivals, start=1):
            running.replay([arrival])
            now = min(one.time for one in scans)
            inputs = [(one.stream, one.time, one.values) for one in arrivals[:number]]
            window = sum(evaluate(child, inputs, now).total() for child in plan.below)
            assert stateful.stored == (0 if (kind, approach) == ("group", "NTA") else window)
            if approach is Approach.NTA:
                own = [
                    evaluate(node, inputs, s.time) for node, s in zip(below, scans, strict=False)
                ]
                assert [one.stored for one in scans] == [rows.total() for rows in own]


@pytest.mark.parametrize("approach", ON_TIME)
def test_a_silent_stream_holds_back_answers_until_it_has_passed_them(approach: Approach) -> None:
    running = pipeline(PLANS["join, one window"], approach)
    running.replay([Arrival(time, 0, time, (0, time)) for time in range(1, 9)])
    assert running.changes == []
    running.replay([Arrival(9, 1, 4, (0, 1))])
    assert [(one.instant, one.sign) for one in running.changes] == [(4, 1)] * 4
