"""Pipelines: when answers come out under ITA, TPA and NTA, and that they are the same."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.local.database import LocalDatabase
from nilometer.local.pipeline import Pipeline
from nilometer.local.pipeline_clock import Costs, SimulatedClock
from nilometer.local.schedulers import AnswersFirst, Operator, RoundRobin, Scheduler
from nilometer.model.time import EARLIEST, FOREVER
from tests.change_data import STREAMS, ChangeData, change_data
from tests.change_oracle import as_counter, changes_of, check_net, is_same
from tests.change_queries import ChangeCase, change_cases
from tests.market import EXECUTIONS, SUM, market, sales

CASES = int(os.environ.get("NILOMETER_PIPELINE_CASES", "24"))
ON_TIME = ("tpa", "nta")
SCHEDULERS: tuple[type[Scheduler], ...] = (RoundRobin, AnswersFirst)
SECOND = 1_000_000

FIGURE_1 = {1: 6, 2: 9, 3: 1, 4: 2, 5: 5, 6: 3, 7: 8, 8: 2, 9: 1, 10: 4, 11: 7, 12: 3, 13: 1, 14: 2}
"""Prices by ticks. T1 is the tick 7; tuples leave after seven ticks, as 6 does at T2."""


def shown(pipeline: Pipeline, after: int = 0) -> list[tuple[int, int, Any]]:
    """(tick of the clock, tick of the change, row) of what has come since a tick."""
    return sorted(
        (one.clock // SECOND, time // SECOND, row[0])
        for one in pipeline.outputs
        for row, time, diff in changes_of(pa.Table.from_batches([one.changes]))
        if diff > 0 and time > after * SECOND
    )


def figure_1(execution: str, last: int, scheduler: Scheduler | None = None) -> Pipeline:
    statement = SUM.format(7 * SECOND - 1)
    pipeline = market().pipeline(statement, execution, scheduler, distinct_times=True)
    for tick, price in FIGURE_1.items():
        if tick <= last:
            pipeline.push("S", sales([(tick * SECOND, price)]), tick * SECOND)
            pipeline.run()
    return pipeline


def test_ita_shows_the_sums_of_figure_1_when_a_tuple_passes_the_selection() -> None:
    t1, t2, t3, t5 = 7, 8, 9, 11
    assert shown(figure_1("ita", 10), after=5) == [(t1, t1, 28)]
    assert shown(figure_1("ita", t5), after=t1) == [(t5, t2, 22), (t5, t3, 13), (t5, t5, 20)]


@pytest.mark.parametrize("execution", ON_TIME)
def test_tpa_and_nta_show_the_sums_of_figures_3_and_5_at_once(execution: str) -> None:
    t1, t2, t3, t5 = 7, 8, 9, 11
    pipeline = figure_1(execution, t5)
    assert shown(pipeline, after=5) == [(t1, t1, 28), (t2, t2, 22), (t3, t3, 13), (t5, t5, 20)]
    counts = pipeline.statistics
    if execution == "tpa":
        assert counts.negative_rows == 0
        assert counts.of("select S").probes == counts.of("scan S").probes > 0
    else:
        assert counts.negative_rows == 4  # Of the ticks 1 to 4, whether selected or not.
        assert counts.probes == 0


class Delayed:
    """Leaves an operator out until it is released."""

    def __init__(self) -> None:
        self.delayed = ""
        self._inner = RoundRobin()

    def order(self, operators: Sequence[Operator]) -> Iterable[Operator]:
        return self._inner.order([one for one in operators if one.name != self.delayed])


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_tuple_that_is_delayed_below_keeps_older_ones_from_expiring(execution: str) -> None:
    """Figure 2: the selection needs three ticks for the tuple 7, and 5 leaves at T6."""
    t5, t8 = 11, 14
    scheduler = Delayed()
    pipeline = figure_1(execution, 10, scheduler)
    scheduler.delayed = "select S"
    for tick in range(t5, t8):
        pipeline.push("S", sales([(tick * SECOND, FIGURE_1[tick])]), tick * SECOND)
        pipeline.run()
    assert shown(pipeline, after=t5 - 1) == []
    scheduler.delayed = ""
    pipeline.push("S", sales([(t8 * SECOND, FIGURE_1[t8])]), t8 * SECOND)
    pipeline.run()
    sums = shown(pipeline, after=t5 - 1)
    assert [total for _, _, total in sums] == ([20] if execution == "ita" else [20, 15, 7])
    assert sums[0] == (t8, t5, 20)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_predicate_that_nothing_passes_delays_expiry_under_ita_only(execution: str) -> None:
    minute = 60 * SECOND
    pipeline = market().pipeline(SUM.format(10 * minute), execution, distinct_times=True)
    pipeline.push("S", sales([(0, 9)]), 0)
    for number in range(1, 61):
        pipeline.push("S", sales([(number * minute, 1)]), number * minute)
        pipeline.run()
    gone = [(clock, time) for clock, time, total in shown(pipeline, after=0) if total is None]
    assert gone == ([] if execution == "ita" else [(11 * 60, 10 * 60)])
    assert len(pipeline.finish()) == 5  # NULL, 9, NULL: two are taken back.


arrivals = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 8)),
    min_size=1,
    max_size=30,
    unique_by=lambda r: r[0],
).map(sorted)


@settings(max_examples=60)
@given(arrivals, st.integers(0, 20))
def test_a_change_comes_out_with_the_first_tuple_that_can_tell(
    rows: list[tuple[int, int]], window: int
) -> None:
    """All tuples tell it under TPA and NTA, those that are selected under ITA."""
    for execution in EXECUTIONS:
        db = market(rows)
        pipeline = db.pipeline(SUM.format(window), execution, distinct_times=True)
        for time, price in rows:
            pipeline.push("S", sales([(time, price)]), time)
            pipeline.run()
        telling = [time for time, price in rows if price > 4 or execution in ON_TIME]
        expected = []
        for _, time, _ in changes_of(db.sql(SUM.format(window))):
            place = bisect_left(telling, time)
            if time > 0 and place < len(telling):
                expected.append((time, telling[place]))
        found = [
            (time, one.clock)
            for one in pipeline.outputs
            for _, time, _ in changes_of(pa.Table.from_batches([one.changes]))
            if time > 0
        ]
        assert sorted(found) == sorted(expected)
        response = pipeline.statistics.response
        assert response.changes == len(expected)
        assert response.total == sum(clock - time for time, clock in expected)
        assert response.maximum == max((clock - time for time, clock in expected), default=0)


def database(data: ChangeData) -> LocalDatabase:
    db = LocalDatabase()
    for name in STREAMS:
        table = pa.Table.from_batches([data.batch(name)])
        db.create_stream(name, table, time="ts", lateness=data.lateness[name])
    db.create_table("T", pa.Table.from_batches([data.static()]))
    return db


def known(pipeline: Pipeline, data: ChangeData) -> int:
    """Before which instant everything can be known: all streams have come so far."""
    marks = [data.watermark(name) for name in pipeline.streams]
    reached = [EARLIEST if mark is None else mark for mark in marks]
    return max(EARLIEST + 1, min(reached, default=FOREVER))


def feed(pipeline: Pipeline, data: ChangeData, draw: st.DataObject) -> None:
    """Push the rows of all streams, mixed, and let operators run in between."""
    left = {name: 0 for name in STREAMS if data.streams[name]}
    while left:
        name = draw.draw(st.sampled_from(sorted(left)))
        size = draw.draw(st.integers(1, 3))
        if name in pipeline.streams:
            pipeline.push(name, data.batch(name, left[name], left[name] + size))
        left[name] += size
        if left[name] >= len(data.streams[name]):
            del left[name]
        if draw.draw(st.booleans()):
            pipeline.run()
    pipeline.run()


@settings(max_examples=CASES)
@given(st.data(), change_data(max_rows=6), change_cases())
def test_all_executions_give_the_changelog_of_the_batch(
    draw: st.DataObject, data: ChangeData, case: ChangeCase
) -> None:
    db = database(data)
    batch = changes_of(db.sql(case.sql))
    for execution in EXECUTIONS:
        scheduler: type[Scheduler] = draw.draw(st.sampled_from(SCHEDULERS))
        pipeline = db.pipeline(case.sql, execution, scheduler())
        feed(pipeline, data, draw)
        if execution in ON_TIME:  # Nothing is late that could be known.
            due = [change for change in batch if change[1] < known(pipeline, data)]
            found = changes_of(pipeline.changelog())
            assert is_same(as_counter(found), as_counter(due)), f"{execution}: {case.sql}"
        changes = changes_of(pipeline.finish())
        check_net(changes)
        assert is_same(as_counter(changes), as_counter(batch)), f"{execution}: {case.sql}"
        assert pipeline.statistics.queued == 0
        assert pipeline.statistics.late == 0
        times = [time for one in pipeline.outputs for time in one.changes["_time"].to_pylist()]
        firsts = [min(one.changes["_time"].to_pylist()) for one in pipeline.outputs]
        assert firsts == sorted(firsts)
        assert len(times) == len(batch)


def replay(execution: str, statement: str, rows: Sequence[tuple[int, int]]) -> Pipeline:
    """Tuples that arrive at their times, while operators work for simulated time."""
    clock = SimulatedClock()
    costs = Costs(call=200, row=50, probe=20)
    pipeline = market().pipeline(
        statement, execution, clock=clock, costs=costs, distinct_times=True
    )
    for time, price in rows:
        pipeline.run(until=time)
        pipeline.push("S", sales([(time, price)]), time)
    pipeline.run()
    return pipeline


def test_answers_of_tpa_and_nta_come_much_sooner_than_those_of_ita() -> None:
    """One window, selectivity 0.25, about twenty tuples a second."""
    rows = [(50_000 * i + 7_919 * i % 30_000 + 1, i * 5 % 16 // 4 * 4) for i in range(1, 400)]
    statement = SUM.replace("> 4", "> 11").format(2 * SECOND)
    found = {execution: replay(execution, statement, rows).statistics for execution in EXECUTIONS}
    ita, tpa, nta = (found[execution] for execution in EXECUTIONS)
    assert ita.response.average > 2 * nta.response.average > 0
    assert nta.response.average >= tpa.response.average
    assert ita.response.maximum > 2 * max(tpa.response.maximum, nta.response.maximum)
    assert nta.rows_processed > tpa.rows_processed
    assert tpa.probes > 0 == nta.probes == ita.probes
    assert nta.negative_rows > 0 == tpa.negative_rows


def test_tuples_queue_up_while_operators_work() -> None:
    rows = [(10 * i, 9) for i in range(1, 100)]
    pipeline = replay("tpa", SUM.format(SECOND), rows)
    counts = pipeline.statistics
    assert counts.of("scan S").longest_queue > 10
    assert counts.queued == 0
    assert counts.response.maximum > 10_000
    assert counts.elapsed >= counts.calls * 200
    assert counts.throughput == counts.response.changes * 1e6 / counts.elapsed


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_silent_input_holds_the_other_up_until_it_is_known_to_have_come_as_far(
    execution: str,
) -> None:
    statement = """
        SELECT price FROM S [RANGE 10 SECONDS] EXCEPT SELECT price FROM R [RANGE 5 SECONDS]
        WHERE price > 4"""
    db = market(names=("S", "R"))
    pipeline = db.pipeline(statement, execution, distinct_times=True)
    pipeline.push("S", sales([(1, 3)]), 1)
    assert pipeline.run() == []
    pipeline.push("R", sales([(2, 3)]), 2)  # It is not selected, but time has passed.
    assert len(pipeline.run()) == (0 if execution == "ita" else 1)
    pipeline.push("R", sales([(3, 9)]), 3)
    assert len(pipeline.run()) == (1 if execution == "ita" else 0)
    pipeline.reach(11 * SECOND)  # Nothing comes, but both streams have come so far.
    assert len(pipeline.run()) == (0 if execution == "ita" else 1)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_operator_that_has_to_expire_something_has_not_come_further(
    execution: str, scheduler: type[Scheduler]
) -> None:
    """The set operator stores tuples of R, which expire after what DISTINCT below it stores."""
    statement = """
        (SELECT DISTINCT price FROM S [RANGE 5 MICROSECONDS]) EXCEPT ALL
        (SELECT price FROM R [RANGE 7 MICROSECONDS])"""
    db = market(names=("S", "R"))
    pipeline = db.pipeline(statement, execution, scheduler(), distinct_times=True)
    for stream, time in (("S", 1), ("R", 2)):
        pipeline.push(stream, sales([(time, 3)]), time)
        pipeline.run()
    pipeline.reach(20)
    pipeline.run()
    expected = {((3,), 1, 1), ((3,), 2, -1)}
    assert set(changes_of(pipeline.changelog())) <= expected
    assert set(changes_of(pipeline.finish())) == expected
    assert len(pipeline.changelog()) == 2


STATEMENTS = {
    "pairwise": "SELECT COUNT(*) AS n FROM S, R WINDOW = 2 MICROSECONDS WHERE S.price = R.price",
    "directed": """
        SELECT S.price FROM S [RANGE 9 MICROSECONDS], R [RANGE 4 MICROSECONDS]
        DWINDOW(S, R) = 3 MICROSECONDS WHERE S.price = R.price EMIT CHANGES""",
    "of results": """
        SELECT COUNT(*) AS n FROM (SELECT S.price AS p, _time AS t FROM S, R
        WINDOW = 3 MICROSECONDS WHERE S.price = R.price) X [RANGE 4 MICROSECONDS]""",
    "paced": """
        SELECT price, COUNT(*) AS n FROM S [RANGE 6 MICROSECONDS] GROUP BY price
        EMIT CHANGES EVERY 5 MICROSECONDS""",
    "rows": """
        SELECT S.price FROM S [ROWS 3], R [RANGE 5 MICROSECONDS] WHERE S.price = R.price
        EMIT CHANGES""",
    "left": """
        SELECT S.price, R.ts FROM S [RANGE 5 MICROSECONDS] LEFT JOIN R [RANGE 7 MICROSECONDS]
        ON S.price = R.price""",
    "absent": """
        SELECT price FROM S [RANGE 5 MICROSECONDS] WHERE NOT EXISTS
        (SELECT 1 FROM R [RANGE 4 MICROSECONDS] WHERE R.price = S.price)""",
    "first": "SELECT price FROM S [RANGE 8 MICROSECONDS] ORDER BY price DESC LIMIT 2",
    "mixed": """
        SELECT price FROM S [RANGE 5 MICROSECONDS] UNION ALL
        SELECT SUM(price) FROM R [RANGE 3 MICROSECONDS]""",
    "above": """
        SELECT n, COUNT(*) AS m FROM (SELECT price, COUNT(*) AS n FROM S [RANGE 9 MICROSECONDS]
        GROUP BY price) X GROUP BY n""",
}


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_every_operator_in_a_pipeline(name: str, execution: str) -> None:
    """Two streams that bring a tuple in turn, sometimes at the same time."""
    own = [(2 * i, i * i % 5) for i in range(1, 30)]
    others = [(2 * i + i % 3 // 2, i * 3 % 7) for i in range(1, 30)]
    db = LocalDatabase()
    for stream, rows in (("S", own), ("R", others)):
        db.create_stream(stream, pa.Table.from_batches([sales(rows)]), time="ts")
    batch = changes_of(db.sql(STATEMENTS[name]))
    pipeline = db.pipeline(STATEMENTS[name], execution, distinct_times=True)
    for pair in zip(own, others, strict=True):
        for stream, row in zip(("S", "R"), pair, strict=True):
            if stream in pipeline.streams:
                pipeline.push(stream, sales([row]), row[0])
        pipeline.run()
    found = as_counter(changes_of(pipeline.changelog()))
    last = min({"S": own, "R": others}[stream][-1][0] for stream in pipeline.streams)
    due = as_counter(change for change in batch if change[1] <= last)
    assert found == due if execution in ON_TIME else found <= due
    assert as_counter(changes_of(pipeline.finish())) == as_counter(batch)
    assert bool(pipeline.statistics.negative_rows) == (execution == "nta" and name != "of results")


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_pace_ends_although_nothing_is_selected(execution: str) -> None:
    statement = SUM.format(100) + " EMIT CHANGES EVERY 10 MICROSECONDS"
    pipeline = market().pipeline(statement, execution, distinct_times=True)
    pipeline.push("S", sales([(3, 9), (10, 1)]), 10)
    assert len(pipeline.run()) == (1 if execution == "ita" else 2)  # The first is NULL, since ever.
    pipeline.push("S", sales([(11, 1)]), 11)
    assert pipeline.run() == []
    assert set(changes_of(pipeline.finish())) == {
        *(((None,), EARLIEST, 1), ((None,), 10, -1), ((9,), 10, 1)),
        *(((9,), 110, -1), ((None,), 110, 1)),
    }
