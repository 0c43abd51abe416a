"""The examples of Hammad et al. on Nile's own pipelines: what comes out, and when.

Figures are drawings that the text describes in part; what is made up is said in
`test_nile_examples`, whose inputs these are. A tick is a second of the clock; windows are closed,
so a window of seven ticks is one microsecond shorter here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from nilometer_papers.algorithms.nile.answer import AnswerOperator
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple
from nilometer_papers.algorithms.nile.project import Project
from nilometer_papers.algorithms.nile.select import Select
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from nilometer_papers.algorithms.nile.w_aggregate import WAggregate
from nilometer_papers.algorithms.nile.w_distinct import WDistinct
from nilometer_papers.algorithms.nile.w_group_by import WGroupBy
from nilometer_papers.algorithms.nile.w_join import WJoin
from nilometer_papers.algorithms.nile.w_minus import WMinus
from tests.nile_plans import Ticks, fold, key, second
from tests.unit.test_nile_examples import SALES

SECOND = 1_000_000
ON_TIME = (Approach.TPA, Approach.NTA)
T1, T2, T3, T5, T6 = 7, 8, 9, 11, 12


def ticks(count: int) -> int:
    """A window out of which a tuple is after so many ticks."""
    return count * SECOND - 1


def arrive(stream: int, rows: Sequence[tuple[Any, ...]]) -> list[Arrival]:
    return [Arrival(t * SECOND, stream, t * SECOND, tuple(values)) for t, *values in rows]


def start(root: Operator, approach: Approach) -> Pipeline:
    return Pipeline(AnswerOperator(root), approach, lambda: 0)


def run(root: Operator, approach: Approach, *streams: Sequence[tuple[Any, ...]]) -> Pipeline:
    """Everything that came out before the streams ended."""
    arrivals = [one for stream, rows in enumerate(streams) for one in arrive(stream, rows)]
    running = start(root, approach)
    running.replay(sorted(arrivals, key=lambda one: one.clock))
    return running


def total() -> WAggregate:
    scan = StreamScan(0, ticks(7))
    return WAggregate(Select(scan, lambda values: values[0] > 4), [("SUM", key)])


def results_of(running: Pipeline, after: int) -> list[tuple[float, float, Any]]:
    """(tick of the clock, tick from which it holds, value) of what came to the answer."""
    return [
        (clock / SECOND, change.instant / SECOND, change.values[0])
        for change, clock in zip(running.changes, running.clocks, strict=True)
        if change.sign > 0 and change.instant > after * SECOND
    ]


def test_figure_1a_under_ita_sums_come_when_a_tuple_passes_the_selection() -> None:
    assert results_of(run(total(), Approach.ITA, SALES[:10]), after=5) == [(T1, T1, 28)]
    sums = results_of(run(total(), Approach.ITA, SALES[:T5]), after=T1)
    assert sums == [(T5, T2, 22), (T5, T3, 13), (T5, T5, 20)]


@pytest.mark.parametrize("approach", ON_TIME)
def test_figures_3b_and_5b_sums_come_at_once(approach: Approach) -> None:
    running = run(total(), approach, SALES[:T5])
    assert results_of(running, after=5) == [(T1, T1, 28), (T2, T2, 22), (T3, T3, 13), (T5, T5, 20)]
    scan, select, aggregate, _ = running.operators
    if approach is Approach.TPA:
        assert (scan.counters.tuples, aggregate.counters.tuples) == (11, 5)
        assert select.counters.probes == scan.counters.probes > 0
    else:
        assert select.counters.tuples == 11 + 4  # 6, 9, 1 and 3 have expired.
        assert all(one.counters.probes == 0 for one in running.operators)


@pytest.mark.parametrize("approach", ON_TIME)
def test_figure_2_a_tuple_on_its_way_keeps_older_ones_from_expiring(approach: Approach) -> None:
    """The selection is late with the tuple 7, and 5 expires meanwhile: nobody may say 8."""
    scan = StreamScan(0, ticks(7))
    select = Select(scan, lambda values: values[0] > 4)
    aggregate = WAggregate(select, [("SUM", key)])
    running = start(aggregate, approach)
    running.replay(arrive(0, SALES[:10]))
    for arrival in arrive(0, SALES[10:12]):
        running.push(0, arrival.time, arrival.values)
        scan.step()
    aggregate.probe()
    assert aggregate.local_clock <= T5 * SECOND
    running.replay(arrive(0, SALES[12:]))
    sums = [value for _, _, value in results_of(running, after=T3)]
    assert sums == [20, 15]
    assert 8 not in [change.values[0] for change in running.changes]


@pytest.mark.parametrize("approach", Approach)
def test_figure_1b_an_item_that_is_sold_in_r_is_taken_back(approach: Approach) -> None:
    minus = WMinus(StreamScan(0, ticks(7)), StreamScan(1, ticks(7)))
    root = WGroupBy(minus, lambda values: values[:1], [("MAX", second)])
    s = [(1, "B", 3), (2, "A", 5), (3, "C", 4), (5, "F", 1)]
    running = run(root, approach, s, [(0, "D", 1), (4, "A", 5), (6, "D", 1)])
    assert fold(running.changes, 3 * SECOND) == {("B", 3): 1, ("A", 5): 1, ("C", 4): 1}
    assert fold(running.changes, 4 * SECOND) == {("B", 3): 1, ("C", 4): 1}
    assert (("A", 5), 4 * SECOND, -1) in running.changes


@pytest.mark.parametrize("approach", Approach)
def test_figure_7_minus(approach: Approach) -> None:
    s, r = [(1, "B"), (2, "A"), (3, "C"), (5, "E")], [(0, "E"), (4, "A")]
    running = run(WMinus(StreamScan(0, ticks(6)), StreamScan(1, ticks(6))), approach, s, r)
    running.finish()
    shown = [(v, t // SECOND, sign) for (v,), t, sign in running.changes if t <= 6 * SECOND]
    assert shown == [("B", 1, 1), ("A", 2, 1), ("C", 3, 1), ("A", 4, -1), ("E", 6, 1)]


@pytest.mark.parametrize("approach", Approach)
def test_figure_6_distinct(approach: Approach) -> None:
    rows = [(1, "a"), (3, "d"), (4, "a"), (5, "e"), (6, "d")]
    running = run(WDistinct(StreamScan(0, ticks(7))), approach, rows)
    running.finish()
    answers = [set(fold(running.changes, t * SECOND)) for t in (6, 8, 10, 11, 12, 13)]
    assert answers[:3] == [{("a",), ("d",), ("e",)}] * 3
    assert answers[3:] == [{("d",), ("e",)}, {("d",)}, set()]


@pytest.mark.parametrize("approach", Approach)
def test_figure_8_join(approach: Approach) -> None:
    left = [(1, "x"), (2, "y"), (4, "x"), (8, "y"), (9, "x")]
    right = [(1, "y"), (3, "x"), (6, "y"), (7, "x"), (13, "x")]
    root = WJoin(StreamScan(0, 5 * SECOND), StreamScan(1, 5 * SECOND), (key, key))
    running = run(root, approach, left, right)
    running.finish()
    for tick in range(20):
        both = [
            a for s, a in left for r, b in right if a == b and max(s, r) <= tick <= min(s, r) + 5
        ]
        answer = fold(running.changes, tick * SECOND)
        assert sorted(row[0] for row in answer.elements()) == sorted(both)


def test_figure_4_several_windows_are_scanned_and_values_looked_up() -> None:
    """A product of windows of 5 and 4 ticks: what TPA compares grows with the state, NTA's not."""
    rows = [(t, 0) for t in range(1, 40)]
    compared = {}
    for approach in ON_TIME:
        join = WJoin(StreamScan(0, ticks(5)), StreamScan(1, ticks(4)), (key, key))
        aggregate = WAggregate(join, [("COUNT", key)])
        running = run(aggregate, approach, rows, rows)
        assert fold(running.changes, 38 * SECOND) == {(20,): 1}
        compared[approach] = aggregate.counters.comparisons
    assert compared[Approach.TPA] > 39 * 20
    assert compared[Approach.NTA] == 0


def test_under_one_window_only_the_oldest_stored_tuples_are_looked_at() -> None:
    aggregate = total()
    run(aggregate, Approach.TPA, [(t, 9) for t in range(1, 101)])
    assert aggregate.counters.comparisons <= 2 * 100


def test_erratum_w_minus_lines_5_and_31() -> None:
    """With the tests of the paper, a is never invalidated: once in S, once in R, and later when
    the older of two in S expires."""
    s, r = [(1, "a"), (3, "a"), (20, "z")], [(2, "a"), (19, "y"), (20, "y")]
    for approach in Approach:
        root = WMinus(StreamScan(0, ticks(7)), StreamScan(1, ticks(7)))
        running = run(root, approach, s, r)
        running.finish()
        counts = [fold(running.changes, t * SECOND)["a",] for t in (1, 2, 3, 7, 8, 9, 10)]
        assert counts == [1, 0, 1, 1, 0, 1, 0]


@pytest.mark.parametrize("approach", Approach)
def test_erratum_w_minus_does_not_invalidate_what_expires_at_the_same_instant(
    approach: Approach,
) -> None:
    """Results of a self-join end together; the oldest in O_S may be one that ends just now."""
    join = WJoin(StreamScan(0, ticks(6)), StreamScan(0, ticks(6)), (key, key))
    results = Project(join, lambda values: (values[1] + values[3],))
    root = WMinus(results, StreamScan(1, ticks(5)))
    running = run(root, approach, [(1, 0, 1), (3, 0, 0), (3, 0, 0)])
    running.replay(arrive(1, [(6, 1)]))
    running.finish()
    answers = [fold(running.changes, t * SECOND) for t in (5, 6, 7)]
    assert [answer[1,] for answer in answers] == [4, 3, 0]


def test_erratum_w_distinct_a_reported_tuple_that_becomes_invalid_is_taken_back() -> None:
    """As in section 4.6; by step 8 of the algorithm only the duplicate is put out, and there are
    two of it."""
    distinct = WDistinct(StreamScan(0, 10))
    first, duplicate = Held(1, ("a",)), Held(2, ("a",))
    distinct.queues[0].extend(
        [PlanTuple(first, 1), PlanTuple(duplicate, 2), PlanTuple(first, 3, -1)]
    )
    distinct.step()
    assert list(distinct.output) == [
        PlanTuple(first, 1),
        PlanTuple(first, 3, -1),
        PlanTuple(duplicate, 3),
    ]


@pytest.mark.parametrize("approach", ON_TIME)
def test_erratum_an_empty_group_has_no_row_and_an_empty_window_one_aggregate(
    approach: Approach,
) -> None:
    rows = [(1, "a"), (20, "b")]
    groups = WGroupBy(StreamScan(0, ticks(5)), lambda values: values, [("COUNT", key)])
    assert fold(run(groups, approach, rows).changes, 10 * SECOND) == {}
    counted = WAggregate(StreamScan(0, ticks(5)), [("COUNT", key), ("MAX", key)])
    assert fold(run(counted, approach, rows).changes, 10 * SECOND) == {(0, None): 1}


def test_erratum_a_tuple_expires_when_its_window_is_over_not_with_its_last_instant() -> None:
    """By its condition for probes a tuple is still valid when its age is |w|; the timestamps that
    its algorithms give to what follows say that it is not."""
    running = run(StreamScan(0, 5), Approach.TPA, [(0, "a"), (1, "b")])
    assert [(one.instant, one.sign) for one in running.changes[:2]] == [(0, 1), (6, -1)]


@pytest.mark.parametrize("approach", Approach)
def test_work_takes_time_on_the_clock_and_changes_come_out_after_it(approach: Approach) -> None:
    running = Pipeline(AnswerOperator(total()), approach, Ticks())
    running.replay(arrive(0, SALES))
    assert all(a <= b for a, b in pairwise(running.clocks))
    delays = [
        clock - one.instant
        for one, clock in zip(running.changes[1:], running.clocks[1:], strict=True)
    ]
    assert min(delays) == 4_000  # Of a scan, a selection, a sum and the answer.


def test_answers_of_tpa_and_nta_come_much_sooner_than_those_of_ita() -> None:
    """One window, selectivity 0.25, about twenty tuples a second; steps take a millisecond."""
    times = [50_000 * i + 7_919 * i % 30_000 + 1 for i in range(1, 400)]
    prices = [i * 5 % 16 // 4 * 4 for i in range(1, 400)]
    arrivals = [Arrival(t, 0, t, (price,)) for t, price in zip(times, prices, strict=True)]
    average, largest, tuples, probes = {}, {}, {}, {}
    for approach in Approach:
        select = Select(StreamScan(0, 2 * SECOND), lambda values: values[0] > 11)
        running = Pipeline(AnswerOperator(WAggregate(select, [("SUM", key)])), approach, Ticks())
        running.replay(arrivals)
        delays = [
            clock - one.instant
            for one, clock in zip(running.changes[1:], running.clocks[1:], strict=True)
        ]
        average[approach] = sum(delays) / len(delays)
        largest[approach] = max(delays)
        tuples[approach] = sum(one.counters.tuples for one in running.operators)
        probes[approach] = sum(one.counters.probes for one in running.operators)
    assert average[Approach.ITA] > 2 * average[Approach.NTA] > 0
    assert average[Approach.NTA] >= average[Approach.TPA]
    assert largest[Approach.ITA] > 2 * max(largest[one] for one in ON_TIME)
    assert tuples[Approach.NTA] > tuples[Approach.TPA]
    assert probes[Approach.TPA] > 0 == probes[Approach.NTA] == probes[Approach.ITA]
