"""OVER in the order of time: generated rows and statements, streamed or not, and DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.duck import connect

SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("s", pa.string()),
    ]
)
Row = tuple[int, int | None, float | None, str | None]
OF_ROWS = (
    "SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS a, LAG(s, 2, 'none') OVER "
    "(PARTITION BY k ORDER BY ts) AS b FROM S",
    "SELECT ts, LEAD(v) OVER (PARTITION BY k ORDER BY ts) AS a, LEAD(k, 3) OVER (PARTITION BY k "
    "ORDER BY ts) AS b, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS c FROM S",
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM S",
    "SELECT ts, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM S WHERE v > 0 "
    "QUALIFY n <= 2",
    "SELECT ts, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) "
    "AS a, COUNT(v) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) AS b, MAX(s) OVER "
    "(PARTITION BY s ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS c FROM S",
    "SELECT ts, FIRST_VALUE(v) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, "
    "LAST_VALUE(s) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS b FROM S",
    "SELECT ts, LAST_VALUE(v IGNORE NULLS) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 "
    "PRECEDING AND CURRENT ROW) AS a, FIRST_VALUE(s IGNORE NULLS) OVER (ORDER BY ts ROWS BETWEEN "
    "2 PRECEDING AND CURRENT ROW) AS b FROM S",
    "SELECT ts, NTH_VALUE(v, 2) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND "
    "CURRENT ROW) AS a, NTH_VALUE(s, 2 IGNORE NULLS) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING "
    "AND CURRENT ROW) AS b FROM S",
    "SELECT ts, LAG(k, 1, 7) OVER (ORDER BY ts) AS a, SUM(v) FILTER (WHERE k > 0) OVER "
    "(PARTITION BY s ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS b FROM S",
    "select ts, sum(v) over (partition by k order by ts rows between 1 preceding and current row) "
    "AS a, LAG(d) OVER (PARTITION BY k ORDER BY ts) AS b FROM (SELECT *, LAG(v, 2 IGNORE NULLS) "
    "OVER (PARTITION BY s ORDER BY ts) AS d FROM S)",
    "SELECT ts, LEAD(v) OVER (PARTITION BY k ORDER BY ts) AS a, LAG(v) OVER (PARTITION BY s ORDER "
    "BY ts) AS b, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING) AS c FROM S",
    "SELECT ts, AVG(v) OVER w AS a, MAX(v) OVER w AS b, COUNT(v) OVER (p ORDER BY ts) AS c, "
    "MIN(k) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) AS d, LEAD(s) OVER (p ORDER BY ts) AS e, "
    "COUNT(*) OVER w AS f FROM S WINDOW p AS (PARTITION BY s), w AS (PARTITION BY k ORDER BY ts "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "SELECT ts, LAST_VALUE(v IGNORE NULLS) OVER (PARTITION BY k ORDER BY ts) AS a, FIRST_VALUE(s) "
    "OVER (PARTITION BY k ORDER BY ts) AS b, NTH_VALUE(v, 2 IGNORE NULLS) OVER (PARTITION BY k "
    "ORDER BY ts ROWS UNBOUNDED PRECEDING) AS c, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) "
    "AS d, DENSE_RANK() OVER (PARTITION BY k ORDER BY ts) AS e FROM S",
    "SELECT x.k, x.d FROM (SELECT k, v - LAG(v) OVER (PARTITION BY k ORDER BY ts) AS d FROM S) x "
    "WHERE x.d > 0",
)
OF_INSTANTS = (
    "SELECT ts, k, RANK() OVER (PARTITION BY k ORDER BY ts) AS a, DENSE_RANK() OVER (PARTITION BY "
    "k ORDER BY ts) AS b, COUNT(*) OVER (PARTITION BY k ORDER BY ts) AS c FROM S",
    "SELECT ts, AVG(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '2' SECONDS "
    "PRECEDING AND CURRENT ROW) AS a, MIN(s) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND "
    "PRECEDING AND CURRENT ROW) AS b FROM S",
    "SELECT ts, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS a, VAR_POP(v) OVER (PARTITION BY s "
    "ORDER BY ts) AS b, MIN(v) OVER (ORDER BY ts) AS c, COUNT(s) FILTER (WHERE k > 0) OVER "
    "(PARTITION BY k ORDER BY ts) AS d, DENSE_RANK() OVER (PARTITION BY k ORDER BY ts) AS e FROM S",
    "SELECT ts, MEDIAN(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '3' SECONDS "
    "PRECEDING AND CURRENT ROW) AS a FROM S WHERE s IS NOT NULL",
)
values = st.tuples(
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 0.5, 1.0, -2.25, 7.0]),
    st.sampled_from([None, "a", "b"]),
)


def to_batch(given_rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*given_rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def database(given_rows: Sequence[Row], buckets: int, lateness: int = 0) -> LocalDatabase:
    db = LocalDatabase(buckets)
    rows = pa.Table.from_batches([to_batch(given_rows)])
    db.create_stream("S", rows, time="ts", lateness=lateness)
    return db


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        round(float(one), 9)
        if isinstance(one, int | float)
        else str(one.timestamp())
        if hasattr(one, "timestamp")
        else one
        for one in row
    )


def judge(sql: str, given_rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    with connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("S", pa.Table.from_batches([to_batch(given_rows)]))
        return Counter(map(plain, connection.execute(sql).fetchall()))


def answer(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.drop_columns("_time").columns]
    return Counter(map(plain, zip(*columns, strict=True)))


def check(statement: str, rows: list[Row], buckets: int, cuts: list[int]) -> None:
    asked = judge(statement, rows)
    assert answer(database(rows, buckets).sql(statement)) == asked
    query = database([], buckets, lateness=2 * SECOND).query(statement)
    ordered = sorted(rows, key=lambda row: row[0] // (2 * SECOND))
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = []
    for first, end in pairwise(places):
        parts.append(query.feed({"S": to_batch(ordered[first:end])}))
        query.restart()
    # Four rows of other partitions end all that waits; LEAD does so only with rows of its own.
    last: list[Row] = [(10**6 * SECOND + n, 99, None, "z") for n in range(4)]
    parts.append(query.feed({"S": to_batch(last)}))
    counts = answer(pa.concat_tables(parts))
    if "LEAD" not in statement:
        assert Counter({r: n for r, n in counts.items() if r in asked}) == asked


@pytest.mark.parametrize("statement", OF_ROWS)
@given(
    st.lists(st.integers(0, 30), max_size=20, unique=True).flatmap(
        lambda times: st.lists(values, min_size=len(times), max_size=len(times)).map(
            lambda rest: [(t * SECOND // 2, *r) for t, r in zip(times, rest, strict=True)]
        )
    ),
    st.integers(1, 2),
    st.lists(st.integers(0, 20), max_size=3),
)
@settings(max_examples=20, deadline=None)
def test_rows_before_and_behind(
    statement: str, rows: list[Row], buckets: int, cuts: list[int]
) -> None:
    check(statement, rows, buckets, cuts)


@pytest.mark.parametrize("statement", OF_INSTANTS)
@given(
    st.lists(st.tuples(st.integers(0, 12).map(lambda t: t * SECOND // 2), values), max_size=20).map(
        lambda rows: [(time, *rest) for time, rest in rows]
    ),
    st.integers(1, 2),
    st.lists(st.integers(0, 20), max_size=3),
)
@settings(max_examples=20, deadline=None)
def test_rows_of_one_instant_stand_together(
    statement: str, rows: list[Row], buckets: int, cuts: list[int]
) -> None:
    check(statement, rows, buckets, cuts)


def test_a_star_stands_for_what_there_is() -> None:
    """Also for columns that are called as those which nobody has written."""
    db = LocalDatabase()
    names = ["ts", "over#x", "over#item 0"]
    rows = pa.table([pa.array([0], SCHEMA.field("ts").type), [1], [2]], names=names)
    db.create_stream("S", rows, time="ts")
    assert db.sql("SELECT * FROM S").column_names == [*names, "_time"]
    asked = "SELECT *, `over#x` + 1 AS y, LAG(`over#x`) OVER (ORDER BY ts) AS p FROM S"
    assert db.sql(asked.replace("item 0", "z")).num_rows == 1


def test_a_row_that_looks_forward_comes_with_the_one_it_sees() -> None:
    query = database([], 1).query(
        "SELECT v, LEAD(v) OVER (PARTITION BY k ORDER BY ts) AS after FROM S"
    )
    first = query.feed({"S": to_batch([(0, 1, 1.0, "a"), (SECOND, 2, 2.0, "a")])})
    assert first.num_rows == 0
    query.restart()
    second = query.feed({"S": to_batch([(2 * SECOND, 1, 3.0, "a"), (3 * SECOND, 3, 0.0, "a")])})
    assert second.drop_columns("_time").to_pylist() == [{"v": 1.0, "after": 3.0}]
    assert second["_time"].cast(pa.int64()).to_pylist() == [2 * SECOND]


def test_no_more_is_kept_than_is_looked_at() -> None:
    query = database([], 1).query(
        "SELECT LAG(v, 2) OVER w AS p, ROW_NUMBER() OVER w AS n, SUM(v) OVER w AS t, "
        "LAST_VALUE(v IGNORE NULLS) OVER w AS l, FIRST_VALUE(v) OVER w AS f FROM S "
        "WINDOW w AS (PARTITION BY k ORDER BY ts)"
    )
    emitted = []
    for number in range(20):
        part = [(number * 100 * SECOND + n * SECOND, n % 3, float(n), "a") for n in range(99)]
        emitted.append(query.feed({"S": to_batch(part)}))
        [program] = [bucket.operator for stage in query.stages for bucket in stage.buckets]
        assert sum(ref.rows for one in program.stored for ref in one.refs) <= 30
    assert max(pa.concat_tables(emitted)["n"].to_pylist()) == 660


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SELECT MAX(s) OVER (ORDER BY ts) FROM S", "would keep all of them", "ROWS BETWEEN"),
        ("SELECT MEDIAN(v) OVER (ORDER BY ts) FROM S", "would keep all of them", "ROWS BETWEEN"),
        ("SELECT COUNT(DISTINCT v) OVER (ORDER BY ts) FROM S", "would keep all of them", "ROWS"),
        ("SELECT SUM(v) OVER w FROM S WINDOW u AS (ORDER BY ts)", "there is no window w", "WINDOW"),
        (
            "SELECT SUM(v) OVER w FROM S WINDOW w AS (ORDER BY ts), W AS (ORDER BY ts)",
            "there are two windows W",
            "",
        ),
        (
            "SELECT SUM(v) OVER (w ORDER BY ts) FROM S WINDOW w AS (ORDER BY ts)",
            "the window w already defines this",
            "",
        ),
        (
            "SELECT LEAD(v) OVER (PARTITION BY k ORDER BY ts), LEAD(v) OVER (PARTITION BY s ORDER "
            "BY ts) FROM S",
            "all LEADs of a query need the same PARTITION BY",
            "one query for each",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM S",
            "into the future",
            "ROWS BETWEEN",
        ),
        ("SELECT LAG(v) OVER (ORDER BY v) FROM S", "v is not the time", "that is ts"),
        ("SELECT LAG(v) OVER (ORDER BY ts DESC) FROM S", "must be ordered by time", "ORDER BY ts"),
        ("SELECT LAG(v) OVER (PARTITION BY k) FROM S", "must be ordered by time", "ORDER BY ts"),
        ("SELECT NTILE(4) OVER (ORDER BY ts) FROM S", "NTILE needs all rows", "static table"),
        ("SELECT CUME_DIST() OVER (ORDER BY ts) FROM S", "CUME_DIST needs", "static table"),
        ("SELECT PERCENT_RANK() OVER (ORDER BY ts) FROM S", "PERCENT_RANK needs", "static"),
        (
            "SELECT NTH_VALUE(v, 0) OVER (ORDER BY ts ROWS 3 PRECEDING) FROM S",
            "counted from 1",
            "",
        ),
        (
            "SELECT NTH_VALUE(v, 2, TRUE) OVER (ORDER BY ts ROWS 3 PRECEDING) FROM S",
            "takes two arguments",
            "IGNORE NULLS",
        ),
        *(
            (f"SELECT {call} FROM S", "a whole number of rows", "write 1")
            for call in (
                "NTH_VALUE(v, 9223372036854775807) OVER (ORDER BY ts ROWS 3 PRECEDING)",
                "LAG(v, 99999999999999999999) OVER (ORDER BY ts)",
                "SUM(v) OVER (ORDER BY ts ROWS 99999999999999999999 PRECEDING)",
            )
        ),
        (
            "SELECT LAG(v) OVER (ORDER BY ts) FROM S [RANGE 5 S]",
            "cannot be combined with a window",
            "leave",
        ),
        ("SELECT DISTINCT LAG(v) OVER (ORDER BY ts) FROM S", "are appended", "subquery"),
        ("SELECT k, LAG(v) OVER (ORDER BY ts) FROM S ORDER BY k LIMIT 1", "are appended", "subq"),
        (
            "SELECT LAG(v) OVER (ORDER BY ts) FROM TUMBLE(S, 1 S)",
            "over time windows, OVER must work",
            "PARTITION BY window_end, … or ORDER BY window_end",
        ),
        (
            "SELECT k, LAG(COUNT(*)) OVER (PARTITION BY k ORDER BY window_end) AS p, RANK() OVER "
            "(PARTITION BY window_end ORDER BY COUNT(*)) AS r FROM TUMBLE(S, 1 S) GROUP BY k, "
            "window_end",
            "over time windows, OVER must work",
            "not both",
        ),
        (
            "SELECT date_trunc('second', ts) AS m, SUM(COUNT(*)) OVER (PARTITION BY date_trunc("
            "'minute', ts)) AS t FROM S GROUP BY date_trunc('second', ts), date_trunc('minute', "
            "ts)",
            "over time windows, OVER must work",
            "",
        ),
        ("SELECT LAG(1) OVER (ORDER BY ts)", "there is no column ts", ""),
        ("SELECT LAG(v, 1, 'x') OVER (ORDER BY ts) FROM S", "different type than the column", ""),
        ("SELECT array_agg(v) OVER (ORDER BY ts ROWS 1 PRECEDING) FROM S", "with OVER yet", ""),
        (
            "SELECT string_agg(s, ',') OVER (ORDER BY ts) FROM S",
            "string_agg is not supported",
            "lists",
        ),
        (
            "SELECT COUNT(*) OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
            "FOLLOWING) FROM S",
            "extends into the future",
            "",
        ),
        ("SELECT LEAD(v) IGNORE NULLS OVER (ORDER BY ts) FROM S", "may wait forever", "static"),
        ("(SELECT v FROM S) WINDOW w AS (ORDER BY ts)", "WINDOW only names windows", "parentheses"),
        ("SELECT RANK(v) OVER (ORDER BY ts) FROM S", "with OVER yet", ""),
        ("SELECT LAG(v, x) OVER (ORDER BY ts) FROM S", "a whole number of rows", "write 1"),
        ("SELECT k, LAG(v) OVER (ORDER BY ts) FROM S GROUP BY k", "v is neither a key", "MAX(v)"),
        ("SELECT SUM(s) OVER (ORDER BY ts ROWS 3 PRECEDING) FROM S", "needs a number", "cast"),
        (
            "SELECT LAG(n) OVER (ORDER BY t) FROM (SELECT COUNT(*) AS n, MAX(ts) AS t "
            "FROM S [ROWS 3] GROUP BY k) x",
            "must only append rows",
            "",
        ),
    ],
)
def test_what_cannot_be_is_said_kindly(statement: str, message: str, hint: str) -> None:
    with pytest.raises(NilometerError, match=message) as caught:
        database([], 1).sql(statement)
    assert hint in (caught.value.hint or "")


def test_equal_rows_stay_in_their_order_while_they_wait() -> None:
    """Each of many equal rows sees the next once, also where some are given out and some wait."""
    query = database([], 1).query("SELECT LEAD(v, 2) OVER (PARTITION BY k ORDER BY ts) AS n FROM S")
    rows: list[Row] = [(key, key % 40, 1.0, "a") for key in range(40) for _ in range(3)]
    emitted = [query.feed({"S": to_batch([*rows, (50, 99, None, None)])})]
    query.restart()
    later: list[Row] = [(60, key, 2.0, "a") for key in range(40)]
    emitted.append(query.feed({"S": to_batch([*later, (70, 99, None, None)])}))
    times = Counter(pa.concat_tables(emitted)["_time"].cast(pa.int64()).to_pylist())
    assert times == Counter({**dict.fromkeys(range(40), 1), 60: 40})


def test_a_column_without_a_name_has_the_text_that_is_written() -> None:
    said = "LAG(v) OVER (ORDER BY ts)"
    assert database([], 1).sql(f"SELECT {said} FROM S").column_names == [said, "_time"]
