"""Nile's response times in counted work: the same in every run, and what an idle machine shows."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival
from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.nile import load
from nilometer_papers.experiments.nile.load import CLAIMS, PASSES, RATE, respond, run_counted
from nilometer_papers.experiments.nile.queries import Query, q1, q5
from nilometer_papers.experiments.nile.response_claims import ALL
from nilometer_papers.experiments.nile.sales import synthetic_sales

SECOND = 1_000_000
WINDOW = 10 * SECOND
RATES = 20


def sales(query: Query, tuples: int) -> list[Arrival]:
    return synthetic_sales(query.streams, RATES, query.items, tuples, seed=6)


def test_counted_work_is_the_same_in_every_run() -> None:
    query = q5((WINDOW, WINDOW // 2), RATES, 0.8)
    arrivals = sales(query, 900)
    first, again = (respond(query, arrivals, WINDOW, 500) for _ in range(2))
    assert first == again
    assert min(float(first[name]["changes"]) for name in ALL) > 3


def test_a_slower_machine_works_as_many_times_longer() -> None:
    query = q1(WINDOW)
    arrivals = sales(query, 600)
    slow, fast = (run_counted(query, arrivals, Approach.ITA, one)[0].worked for one in (2.0, 1.0))
    assert slow == pytest.approx(2 * fast, rel=0.01)


@pytest.mark.parametrize("one_in", [4, 10, 20])
def test_ita_waits_for_the_next_tuple_that_passes(one_in: int) -> None:
    """On a machine that takes no time: so long, whatever the machine or the operators cost."""
    query = q1(WINDOW, 1 / one_in)
    arrivals = sales(query, 1600)
    passing = [one.time for one in arrivals if one.values[2] < round(1000 / one_in)]
    ends = [time + WINDOW + 1 for time in passing]
    expired = [end for end in ends if end <= passing[-1]]
    waits = [passing[bisect_right(passing, end - 1)] - end for end in expired]
    responses = respond(query, arrivals, WINDOW, 0)
    assert responses["ITA"]["expired_ms"] == pytest.approx(sum(waits) / len(waits) / 1000, rel=0.02)
    assert float(responses["ITA"]["expired_ms"]) == pytest.approx(1000 * one_in / RATES, rel=0.3)
    assert responses["TPA"]["expired_ms"] == responses["NTA"]["expired_ms"] == 0


def test_however_fast_a_machine_is_the_longest_wait_of_tpa_is_behind_a_scan() -> None:
    query = q5((WINDOW, WINDOW // 2), RATES, 0.8)
    arrivals = sales(query, 900)
    ratios = []
    for microseconds in (0.1, 1.0, 10.0):
        responses = respond(query, arrivals, WINDOW, microseconds)
        ratios.append(float(responses["TPA"]["maximum_ms"]) / float(responses["NTA"]["maximum_ms"]))
    assert ratios == pytest.approx([ratios[0]] * 3, rel=0.02)
    assert ratios[0] > 1.05


def rows(figure: str, at: float, busy: float, **times: tuple[float, float]) -> list[Row]:
    """Average and maximum of each approach at one point."""
    return [
        {
            "figure": figure,
            "at": at,
            "busy": busy,
            "seed": 1,
            "algorithm": name,
            "changes": 10,
            "average_ms": average,
            "maximum_ms": maximum,
            "expired_ms": 2 * average,
        }
        for name, (average, maximum) in times.items()
    ]


@pytest.mark.parametrize(("longest", "expected"), [(4800, True), (9700, False)])
def test_delays_are_those_of_the_paper_where_fewer_tuples_pass(
    longest: float, expected: bool
) -> None:
    points = [
        row
        for one_in in load.ONE_IN
        for row in rows(PASSES, one_in, 0, ITA=(21 * one_in, longest if one_in == 30 else 99_999))
    ]
    assert CLAIMS[0].check(points).holds == expected


@pytest.mark.parametrize(("tpa", "expected"), [(54, True), (56, False)])
def test_maxima_are_compared_with_that_of_ita(tpa: float, expected: bool) -> None:
    points = [
        row
        for rate in (10, 40)
        for busy in load.BUSY[RATE]
        for row in rows(
            RATE, rate, busy, ITA=(1, 1000), TPA=(1, tpa if busy < 0.1 else 900), NTA=(1, 5)
        )
    ]
    assert CLAIMS[1].check(points).holds == expected
