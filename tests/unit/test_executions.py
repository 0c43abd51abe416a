"""ITA, TPA and NTA, one tuple at a time: when changes come out, and that they are the same."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.model.time import EARLIEST
from tests.change_oracle import Change, as_counter, changes_of
from tests.market import EXECUTIONS, SCHEMA, SUM, TIMESTAMP, market, sales

SECOND = 1_000_000
MINUTE = 60 * SECOND
ON_TIME = ("tpa", "nta")


def start(db: LocalDatabase, statement: str) -> LocalChanges:
    query = db.query(statement)
    assert isinstance(query, LocalChanges)
    return query


def feed(query: LocalChanges, stream: str, *rows: tuple[int, int]) -> list[Change]:
    return changes_of(query.feed({stream: sales(rows)}))


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_condition_that_nothing_passes_delays_expiry_under_ita_only(execution: str) -> None:
    query = start(market(execution=execution), SUM.format(10 * MINUTE))
    feed(query, "S", (0, 9))
    removed = {}
    for number in range(1, 61):
        for row, time, diff in feed(query, "S", (number * MINUTE, 1)):
            if row == (None,) and diff > 0 and time > 0:
                removed[number] = time
    assert removed == ({} if execution == "ita" else {11: 10 * MINUTE + 1})


arrivals = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 8)),
    min_size=1,
    max_size=30,
    unique_by=lambda r: r[0],
).map(sorted)


@settings(max_examples=60)
@given(arrivals, st.integers(0, 20))
def test_a_change_comes_out_with_the_first_tuple_that_is_later(
    rows: list[tuple[int, int]], window: int
) -> None:
    """Under TPA and NTA any tuple will do, under ITA only one that is selected."""
    whole = changes_of(market(rows).sql(SUM.format(window)))
    for execution in EXECUTIONS:
        query = start(market(execution=execution), SUM.format(window))
        emitted = [
            (time, arrival)
            for arrival, price in rows
            for _, time, _ in feed(query, "S", (arrival, price))
            if time > 0
        ]
        telling = [time for time, price in rows if price > 4 or execution in ON_TIME]
        places = [(time, bisect_right(telling, time)) for _, time, _ in whole if time > 0]
        expected = [(time, telling[place]) for time, place in places if place < len(telling)]
        assert sorted(emitted) == sorted(expected), execution


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_silent_input_holds_the_other_back(execution: str) -> None:
    statement = """
        SELECT price FROM S [RANGE 10 SECONDS] EXCEPT SELECT price FROM R [RANGE 5 SECONDS]
        WHERE price > 4"""
    query = start(market(names=("S", "R"), execution=execution), statement)
    assert feed(query, "S", (1, 3), (9, 3)) == []
    assert feed(query, "R", (2, 3)) == [((3,), 1, 1)]  # It is not selected, but time has passed.


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_what_a_stage_has_yet_to_expire_holds_back_those_above_it(execution: str) -> None:
    """The set operator stores tuples of R, which expire after what DISTINCT below it stores."""
    statement = """
        (SELECT DISTINCT price FROM S [RANGE 5 MICROSECONDS]) EXCEPT ALL
        (SELECT price FROM R [RANGE 7 MICROSECONDS])"""
    query = start(market(names=("S", "R"), execution=execution), statement)
    emitted = feed(query, "S", (1, 3)) + feed(query, "R", (2, 3))
    emitted += feed(query, "S", (20, 1)) + feed(query, "R", (20, 2))
    assert as_counter(emitted) == as_counter([((3,), 1, 1), ((3,), 2, -1)])


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


@pytest.mark.one_of(4)
@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_every_operator_tuple_by_tuple(name: str, execution: str) -> None:
    """Two streams that bring a tuple in turn, sometimes at the same time."""
    rows = {
        "S": [(2 * i, i * i % 5) for i in range(1, 30)],
        "R": [(2 * i + i % 3 // 2, i * 3 % 7) for i in range(1, 30)],
    }
    db = LocalDatabase(execution=execution)
    for stream, own in rows.items():
        db.create_stream(stream, pa.Table.from_batches([sales(own)]), time="ts")
    query = start(db, STATEMENTS[name])
    read = [stream for stream in rows if f"{stream} [" in STATEMENTS[name]] or ["S", "R"]
    emitted: list[Change] = []
    for pair in zip(rows["S"], rows["R"], strict=True):
        for stream, row in zip(rows, pair, strict=True):
            if stream in read:
                emitted += feed(query, stream, row)
    before = min(rows[stream][-1][0] for stream in read)
    due = settled(changes_of(db.sql(STATEMENTS[name])), before)
    if execution == "ita":
        due = settled(due, max((time for _, time, _ in emitted), default=EARLIEST) + 1)
    assert as_counter(emitted) == as_counter(due)


def settled(changes: Iterable[Change], before: int) -> list[Change]:
    return [change for change in changes if change[1] < before]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_pace_ends_although_nothing_is_selected(execution: str) -> None:
    statement = SUM.format(100) + " EMIT CHANGES EVERY 10 MICROSECONDS"
    query = start(market(execution=execution), statement)
    assert feed(query, "S", (3, 9), (10, 1)) == [((None,), EARLIEST, 1)]
    due = as_counter([((None,), 10, -1), ((9,), 10, 1)])
    assert as_counter(feed(query, "S", (11, 1))) == (as_counter([]) if execution == "ita" else due)
    assert as_counter(feed(query, "S", (12, 5))) == (due if execution == "ita" else as_counter([]))


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_streams_without_a_time_column_take_the_time_of_arrival(execution: str) -> None:
    db = LocalDatabase(execution=execution)
    db.create_stream("L", pa.table({"price": pa.array([], pa.int64())}))
    query = start(db, "SELECT DISTINCT price FROM L [RANGE 3 MICROSECONDS]")
    emitted: list[Change] = []
    for now, price in ((5, 1), (6, 1), (8, 2), (20, 3), (21, 3)):
        emitted += changes_of(query.feed({"L": pa.record_batch({"price": [price]})}, now))
    expected = {((1,), 5, 1), ((1,), 10, -1), ((2,), 8, 1), ((2,), 12, -1), ((3,), 20, 1)}
    assert set(emitted) == expected


def test_tuples_that_are_late_or_without_a_time_are_counted() -> None:
    query = start(market(), SUM.format(10))
    emitted = feed(query, "S", (5, 9), (5, 8)) + feed(query, "S", (4, 7)) + feed(query, "S", (6, 6))
    none = pa.record_batch([pa.array([None], TIMESTAMP), pa.array([9])], schema=SCHEMA)
    emitted += changes_of(query.feed({"S": none})) + feed(query, "S", (40, 1))
    totals = [row[0] for row, _, diff in emitted if diff > 0]
    assert totals == [None, 17, 23, 6, None]
