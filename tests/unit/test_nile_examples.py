"""The examples of Hammad et al., Efficient Pipelined Execution of Sliding Window Queries.

The figures are drawings that the text describes in part. What the text gives stands in each
test's docstring; the other inputs are made up so that the values of the text come out. A tick of
the paper's clock is a fixed length here, and a row that "expires at T" is gone at T: windows are
closed here, so it is still there one tick earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from tests.change_oracle import Change, changes_of

TIMESTAMP = pa.timestamp("us", "UTC")
SECOND = 1_000_000
TEN_MINUTES = 600 * SECOND
EXECUTIONS = ("tpa", "nta", "ita")

Rows = Sequence[tuple[Any, ...]]
"""(tick, values of the columns)"""


def table(rows: Rows, tick: int, columns: Sequence[str]) -> pa.Table:
    times = pa.array([row[0] * tick for row in rows], pa.int64()).cast(TIMESTAMP)
    values = [pa.array([row[i] for row in rows]) for i in range(1, len(columns) + 1)]
    return pa.Table.from_arrays([times, *values], ["ts", *columns])


def database(streams: Mapping[str, pa.Table], execution: str) -> LocalDatabase:
    db = LocalDatabase(2, execution)
    for name, rows in streams.items():
        db.create_stream(name, rows, time="ts")
    return db


def answer(changes: Sequence[Change], at: int) -> list[Any]:
    """The rows that hold at an instant; of rows of one column, their values."""
    held: Counter[Any] = Counter()
    for row, time, diff in changes:
        if time <= at:
            held[row[0] if len(row) == 1 else row] += diff
    assert min(held.values(), default=0) >= 0
    return sorted(held.elements())


def changes_at(changes: Sequence[Change], at: int) -> list[tuple[Any, int]]:
    return sorted((row[0], diff) for row, time, diff in changes if time == at)


SALES: Rows = (
    *((1, 6), (2, 9), (3, 1), (4, 3), (5, 5), (6, 4), (7, 8)),
    *((8, 2), (9, 3), (10, 1), (11, 7), (12, 2), (13, 4)),
)
TOTAL = "SELECT SUM(price) AS total FROM SalesStream [RANGE 1 HOUR] WHERE price > 4"
T1, T2, T3, T5, T6 = 7, 8, 9, 11, 12


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figure_1a_the_total_of_the_last_hour(execution: str) -> None:
    """Given: the query; a tuple at every tick; the total is 28 at T1, 22 at T2 because 6 expires,
    13 at T2 + 1 because 9 expires, 20 at T5 because 7 arrives; at T2 arrives 2, which is not
    selected. Made up: the other prices, ticks of ten minutes."""
    db = database({"SalesStream": table(SALES, TEN_MINUTES, ["price"])}, execution)
    changes = changes_of(db.sql(TOTAL))
    totals = {tick: answer(changes, tick * TEN_MINUTES) for tick in range(1, 13)}
    assert [totals[tick] for tick in (T1, T2, T3, T3 + 1, T5)] == [[28], [22], [13], [13], [20]]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figure_2_voluntary_expiration(execution: str) -> None:
    """Given: 5 expires at T6; who expires it before 7 has come through says 8, which is never
    right, and never says 20. Here the tuple 7 reaches the query three ticks late."""
    sales = table(SALES, TEN_MINUTES, ["price"])
    db = LocalDatabase(2, execution)
    db.create_stream("SalesStream", sales, time="ts", lateness=3 * TEN_MINUTES)
    query, emitted = db.query(TOTAL), []
    arrivals = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 10]
    for number in arrivals:
        emitted += changes_of(query.feed({"SalesStream": sales.slice(number, 1).to_batches()[0]}))
    later = table([(30, 1), (31, 6), (32, 6), (40, 6)], TEN_MINUTES, ["price"]).to_batches()[0]
    emitted += changes_of(query.feed({"SalesStream": later}))
    assert [answer(emitted, t * TEN_MINUTES) for t in (T1, T2, T3, T5, T6)] == [
        [28],
        [22],
        [13],
        [20],
        [15],
    ]
    assert (8,) not in [row for row, _, _ in emitted]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figures_3_and_5_when_the_total_is_emitted(execution: str) -> None:
    """Given: scheduled by input, the total is emitted only when a tuple passes the selection: 22
    and 13 come with 7 at T5. Probing and negative tuples emit 22 as soon as 2 has come at T2."""
    sales = table(SALES, TEN_MINUTES, ["price"])
    query = database({"SalesStream": sales}, execution).query(TOTAL)
    totals: dict[int, list[int]] = {}
    for number in range(len(sales)):
        batch = sales.slice(number, 1).to_batches()[0]
        new = changes_of(query.feed({"SalesStream": batch}))
        totals[number + 1] = [row[0] for row, _, diff in new if diff > 0]
    if execution == "ita":
        assert totals[T2] == totals[T3] == totals[T3 + 1] == []
        assert totals[T5] == [28, 22, 13]
    else:
        assert totals[T2] == [28, 22]
        assert totals[T3] == [13]
        assert totals[T3 + 1] == totals[T5] == []
        assert totals[T6] == [20, 15]


ITEMS = "SELECT item, quantity FROM {} [RANGE 1 HOUR]"


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figure_1b_the_largest_quantity_of_items_sold_only_in_s(execution: str) -> None:
    """Given: until T1 the answer holds A; at T2 A is added to R, so A is taken back although its
    tuple has not expired. Made up: quantities, and which others are sold."""
    s = table([(1, "B", 3), (2, "A", 5), (3, "C", 4)], TEN_MINUTES, ["item", "quantity"])
    r = table([(0, "D", 1), (4, "A", 5)], TEN_MINUTES, ["item", "quantity"])
    db = database({"S": s, "R": r}, execution)
    changes = changes_of(
        db.sql(
            f"SELECT item, MAX(quantity) AS most FROM ({ITEMS.format('S')} MINUS "
            f"{ITEMS.format('R')}) D GROUP BY item"
        )
    )
    assert answer(changes, 3 * TEN_MINUTES) == [("A", 5), ("B", 3), ("C", 4)]
    assert answer(changes, 4 * TEN_MINUTES) == [("B", 3), ("C", 4)]
    assert (("A", 5), 4 * TEN_MINUTES, -1) in changes


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("word", ["MINUS", "MINUS ALL", "EXCEPT ALL"])
def test_figure_7_minus(execution: str, word: str) -> None:
    """Given: up to T1 S holds B, A and C, none of which is in R; at T2 A arrives in R and is taken
    back; at T3 E arrives in S, but is in R; at T4 E expires from R, and is reported.
    Made up: when E came to R, a window of six ticks."""
    s = table([(1, "B"), (2, "A"), (3, "C"), (5, "E")], SECOND, ["item"])
    r = table([(0, "E"), (4, "A")], SECOND, ["item"])
    db = database({"S": s, "R": r}, execution)
    window = "[RANGE 5.999999 SECONDS]"
    changes = changes_of(db.sql(f"SELECT item FROM S {window} {word} SELECT item FROM R {window}"))
    assert answer(changes, 3 * SECOND) == ["A", "B", "C"]
    assert changes_at(changes, 4 * SECOND) == [("A", -1)]
    assert changes_at(changes, 5 * SECOND) == []
    assert changes_at(changes, 6 * SECOND) == [("E", 1)]
    assert answer(changes, 6 * SECOND) == ["B", "C", "E"]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figure_6_distinct(execution: str) -> None:
    """Given: at T3 the reported a expires, but another a is there; at T5 the reported d expires;
    the distinct values at T5 are e, a and d. Made up: when they came, a window of seven ticks."""
    rows = table([(1, "a"), (3, "d"), (4, "a"), (5, "e"), (6, "d")], SECOND, ["v"])
    db = database({"S1": rows}, execution)
    changes = changes_of(db.sql("SELECT DISTINCT v FROM S1 [RANGE 6.999999 SECONDS]"))
    assert answer(changes, 6 * SECOND) == ["a", "d", "e"]
    assert changes_at(changes, 8 * SECOND) == []
    assert answer(changes, 8 * SECOND) == ["a", "d", "e"]
    assert changes_at(changes, 10 * SECOND) == []
    assert answer(changes, 10 * SECOND) == ["a", "d", "e"]
    assert answer(changes, 11 * SECOND) == ["d", "e"]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figure_4_two_windows(execution: str) -> None:
    """Given: a product of S1 with a window of 5 and S2 with one of 4 ticks; at T8 a3 expires from
    S1 and b4 from S2, which takes back four results of a3 and four more of b4.
    Made up: a tuple of each stream at every tick until T7."""
    one = table([(t, f"a{t}") for t in range(1, 8)], SECOND, ["a"])
    two = table([(t, f"b{t}") for t in range(1, 8)], SECOND, ["b"])
    db = database({"S1": one, "S2": two}, execution)
    statement = "SELECT S1.a, S2.b FROM S1 [RANGE 4.999999 S], S2 [RANGE 3.999999 S] EMIT CHANGES"
    changes = changes_of(db.sql(statement))
    held = answer(changes, 7 * SECOND)
    assert held == [(f"a{i}", f"b{j}") for i in range(3, 8) for j in range(4, 8)]
    gone = [(row, diff) for row, time, diff in changes if time == 8 * SECOND]
    expected = [("a3", f"b{j}") for j in range(4, 8)] + [(f"a{i}", "b4") for i in range(4, 8)]
    assert sorted(gone) == [(row, -1) for row in sorted(expected)]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_figure_8_join(execution: str) -> None:
    """Given: a symmetric join under one window of five ticks. Made up: the tuples."""
    left = [(1, "x"), (2, "y"), (4, "x"), (8, "y"), (9, "x")]
    right = [(1, "y"), (3, "x"), (6, "y"), (7, "x"), (13, "x")]
    db = database({"S": table(left, SECOND, ["v"]), "R": table(right, SECOND, ["v"])}, execution)
    changes = changes_of(
        db.sql("SELECT S.v FROM S, R WINDOW = 5 SECONDS WHERE S.v = R.v EMIT CHANGES")
    )
    for tick in range(20):
        both = [
            a for s, a in left for r, b in right if a == b and max(s, r) <= tick <= min(s, r) + 5
        ]
        assert answer(changes, tick * SECOND) == sorted(both)
