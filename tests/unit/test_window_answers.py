"""Answers of time windows as streams: below OVER, patterns and windows, in one statement or two.

A statement over a query of windows says what it says over a stream of that query's answers; some
are asked of DuckDB, too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.duck import connect

SECOND = 1_000_000
TIME = pa.timestamp("us", tz="UTC")
Row = tuple[int, int, float | None]
MINUTE = "TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
INNER = (
    f"SELECT k, window_end, COUNT(*) AS n, SUM(v) AS s FROM {MINUTE} GROUP BY k, window_end",
    "SELECT k, window_end, COUNT(*) AS n, SUM(v) AS s FROM HOP(TABLE S, DESCRIPTOR(ts), "
    "INTERVAL '30' SECONDS, INTERVAL '2' MINUTES) WHERE v > 0 GROUP BY k, window_end "
    "HAVING COUNT(*) > 1",
    "SELECT k, window_end, COUNT(*) AS n, SUM(v) AS s FROM SESSION(TABLE S PARTITION BY k, "
    "DESCRIPTOR(ts), INTERVAL '20' SECONDS) GROUP BY k, window_end",
    f"SELECT DISTINCT k, window_end, 1 AS n, v AS s FROM {MINUTE}",
)
OUTER = (
    "SELECT k, window_end, n - LAG(n) OVER (PARTITION BY k ORDER BY window_end) AS d FROM {M}",
    "SELECT k, n, AVG(n) OVER (PARTITION BY k ORDER BY window_end ROWS BETWEEN 2 PRECEDING AND "
    "CURRENT ROW) AS a, ROW_NUMBER() OVER (PARTITION BY k ORDER BY window_end) AS r FROM {M} "
    "WHERE n > 0 QUALIFY r > 1",
    "SELECT b.k, ROW_NUMBER() OVER (PARTITION BY b.k ORDER BY e) AS r FROM (SELECT k, n, "
    "window_end AS e FROM {M} WHERE n > 0) b QUALIFY r <= 2",
    "SELECT MAX(s) AS m, COUNT(*) AS c FROM {M} [RANGE 3 MINUTES]",
    "SELECT k, SUM(n) AS t FROM {M} [RANGE 90 SECONDS] GROUP BY k",
    "SELECT * FROM {M} MATCH_RECOGNIZE (PARTITION BY k ORDER BY window_end MEASURES LAST(n) AS n, "
    "FIRST(window_end) AS e PATTERN (A B+) WITHIN 10 MINUTES DEFINE B AS n > PREV(n))",
)
rows = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 2),
        st.sampled_from([None, -1.5, 0.25, 1.0, 2.0, 4.0]),
    ),
    max_size=40,
).map(lambda drawn: sorted(drawn, key=lambda row: row[0]))


def stream(given_rows: list[Row]) -> pa.Table:
    times, keys, values = zip(*given_rows, strict=True) if given_rows else ((), (), ())
    return pa.table(
        {
            "ts": pa.array([SECOND * one for one in times], pa.int64()).cast(TIME),
            "k": pa.array(keys, pa.int64()),
            "v": pa.array(values, pa.float64()),
        }
    )


def database(name: str, table: pa.Table, time: str) -> LocalDatabase:
    db = LocalDatabase(buckets=2)
    db.create_stream(name, table, time=time)
    return db


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows that were appended; or the answer after each change, netted."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        copies = row.pop("_diff", 1)
        counts[tuple(row.values())] += copies
    return Counter({row: count for row, count in counts.items() if count})


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
@given(rows)
@settings(max_examples=8, deadline=None)
def test_in_one_statement_as_in_two(inner: str, outer: str, given_rows: list[Row]) -> None:
    db = database("S", stream(given_rows), "ts")
    answers = db.sql(inner)
    of_two = database("M", answers.drop_columns(["_time"]), "window_end").sql(outer.format(M="M"))
    of_one = db.sql(outer.format(M=f"({inner}) M"))
    assert of_one.schema.names == of_two.schema.names
    assert counted(of_one) == counted(of_two)
    if "[" not in outer and "MATCH" not in outer:
        of_with = db.sql(f"WITH M AS ({inner}) {outer.format(M='M')}")
        assert counted(of_with) == counted(of_two)


DUCK = (
    "SELECT date_trunc('minute', ts) AS m, k, SUM(v) AS s, COUNT(*) - LAG(COUNT(*)) OVER "
    "(PARTITION BY k ORDER BY date_trunc('minute', ts)) AS d FROM S "
    "GROUP BY date_trunc('minute', ts), k",
    "WITH m AS (SELECT date_trunc('minute', ts) AS m, COUNT(*) AS n FROM S GROUP BY 1) "
    "SELECT m, n, SUM(n) OVER (ORDER BY m ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS t FROM m",
)


@pytest.mark.parametrize("statement", DUCK)
@given(rows)
@settings(max_examples=30, deadline=None)
def test_as_duckdb_says(statement: str, given_rows: list[Row]) -> None:
    table = stream(given_rows)
    with connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("S", table)
        right = connection.execute(statement).fetchall()
    ours = database("S", table, "ts").sql(statement).drop_columns(["_time"])
    assert counted(ours) == Counter(right)


@given(rows, st.integers(1, 39))
@settings(max_examples=40, deadline=None)
def test_across_a_restart(given_rows: list[Row], cut: int) -> None:
    statement = (
        "SELECT window_end, k, SUM(v) - LAG(SUM(v)) OVER (PARTITION BY k ORDER BY window_end) "
        f"AS d FROM {MINUTE} GROUP BY window_end, k"
    )
    table = stream(given_rows)
    query = database("S", table.slice(0, 0), "ts").query(statement)
    parts = []
    for part in (table.slice(0, cut), table.slice(cut)):
        parts += [query.feed({"S": batch}) for batch in part.combine_chunks().to_batches()]
        query.restart()
    whole = database("S", table, "ts").sql(statement)
    last = max((row[0] for row in given_rows), default=0)
    due = [row for row in whole.to_pylist() if row["_time"].timestamp() <= last]
    emitted = [row for part in parts for row in part.to_pylist()]
    assert Counter(map(repr, emitted)) == Counter(map(repr, due))


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        (
            "SELECT k, LAG(COUNT(*)) OVER (PARTITION BY k ORDER BY window_start) AS p FROM "
            "SESSION(TABLE S PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECONDS) "
            "GROUP BY k, window_start",
            "window_start is not the time of these rows",
            "_time",
        ),
        (
            f"SELECT LAG(n) OVER (ORDER BY window_end DESC) FROM ({INNER[0]}) M",
            "or across consecutive windows",
            "ORDER BY window_end",
        ),
        (
            f"SELECT window_end, MAX(n) AS n FROM TUMBLE(({INNER[0]}), 1 HOUR) GROUP BY window_end",
            "again",
            "RANGE 1 HOUR",
        ),
        (
            "SELECT LAG(n) OVER (ORDER BY e) FROM (SELECT COUNT(*) AS n, MAX(ts) AS e "
            "FROM S [RANGE 1 MINUTE]) M",
            "must only append rows",
            "without aggregates",
        ),
    ],
)
def test_what_cannot_be_is_said_kindly(statement: str, message: str, hint: str) -> None:
    db = database("S", stream([(0, 1, 1.0)]), "ts")
    with pytest.raises(NilometerError, match=message) as caught:
        db.sql(statement)
    assert hint in (caught.value.hint or "")
