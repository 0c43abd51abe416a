"""OVER of static tables: generated rows and statements against DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.duck import connect

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
Row = tuple[int, int | None, float | None, str | None]
STATEMENTS = (
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS a, RANK() OVER (PARTITION BY k "
    "ORDER BY v) AS b, DENSE_RANK() OVER (ORDER BY s DESC) AS c FROM T",
    "SELECT id, PERCENT_RANK() OVER (PARTITION BY k ORDER BY v) AS a, CUME_DIST() OVER "
    "(PARTITION BY s ORDER BY v DESC) AS b, NTILE(3) OVER (PARTITION BY k ORDER BY v, id) AS c, "
    "NTILE(100) OVER (ORDER BY id) AS d FROM T",
    "SELECT id, LAG(v) OVER (PARTITION BY k ORDER BY id DESC) AS a, LEAD(s, 2, 'none') OVER "
    "(ORDER BY v NULLS LAST, id) AS b FROM T WHERE k IS NOT NULL",
    "SELECT id, SUM(v) OVER () AS a, COUNT(*) OVER (PARTITION BY s) AS b, AVG(v) OVER (PARTITION "
    "BY k ORDER BY id) AS c, MAX(s) OVER (ORDER BY v DESC) AS d FROM T",
    "SELECT id, SUM(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS a, COUNT(v) "
    "OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS b, MIN(v) OVER "
    "(ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c FROM T",
    "SELECT id, FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY id) AS a, LAST_VALUE(s) OVER "
    "(ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS b, NTH_VALUE(v, 2) "
    "OVER (PARTITION BY s ORDER BY id) AS c FROM T",
    "SELECT id, FIRST_VALUE(v IGNORE NULLS) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 "
    "PRECEDING) AS a, LAST_VALUE(s IGNORE NULLS) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 "
    "PRECEDING AND 1 FOLLOWING) AS b FROM T",
    "SELECT id, SUM(v) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND 0.5 FOLLOWING) AS a, "
    "COUNT(*) OVER (PARTITION BY s ORDER BY k DESC RANGE 1 PRECEDING) AS b FROM T",
    "SELECT id, COUNT(v) OVER (ORDER BY id RANGE BETWEEN 2 FOLLOWING AND 5 FOLLOWING) AS a, "
    "MAX(v) OVER (PARTITION BY k ORDER BY id DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 3 "
    "PRECEDING) AS b, MIN(v) OVER (PARTITION BY s ORDER BY k RANGE BETWEEN 1 PRECEDING AND "
    "UNBOUNDED FOLLOWING) AS c FROM T",
    "SELECT id, sum(v) over (order by id rows between 1 preceding and 1 following) AS a, "
    "count(*) over (order by k range between unbounded preceding and current row) AS b FROM T",
    "SELECT id, FIRST_VALUE(v IGNORE NULLS) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 "
    "FOLLOWING) AS a, LAG(v IGNORE NULLS) OVER (PARTITION BY s ORDER BY id) AS b, LEAD(v, 2, 9.5 "
    "IGNORE NULLS) OVER (PARTITION BY k ORDER BY id) AS c FROM T",
    "SELECT id, COUNT(*) OVER (ORDER BY k RANGE 999999999999999999 PRECEDING) AS a, SUM(k) OVER "
    "(ORDER BY id RANGE BETWEEN 1 PRECEDING AND 100000000000000000 FOLLOWING) AS b FROM T",
    "SELECT id, SUM(v) OVER w AS a, SUM(v) OVER (w ROWS 1 PRECEDING) AS b, MAX(id) OVER (p) AS c "
    "FROM T WINDOW p AS (PARTITION BY k), w AS (p ORDER BY id)",
    "SELECT id, bool_and(v > 0) OVER (PARTITION BY k) AS a FROM T",
    "SELECT k, id FROM T QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) <= 2",
    "SELECT k, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT k, COUNT(*) AS n FROM T "
    "GROUP BY k) x",
    "SELECT k, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM T GROUP BY k",
    "SELECT K, SUM(v), SUM(v) / SUM(SUM(v)) OVER () AS share FROM T WHERE v > 0 GROUP BY T.k",
    "SELECT k + 1 AS x, s, MAX(v) AS m, LAG(MAX(v)) OVER (PARTITION BY s ORDER BY k + 1) AS b, "
    "COUNT(*) FILTER (WHERE v > 0) AS c FROM T GROUP BY T.k + 1, s HAVING COUNT(*) > 1",
    "SELECT MAX(v) AS m, COUNT(*) OVER () AS c FROM T",
    "SELECT k, COUNT(*) AS n, SUM(v) AS t, n - LAG(n) OVER (ORDER BY k) AS d FROM T GROUP BY k",
    "SELECT k AS g, SUM(v) AS t, DENSE_RANK() OVER (ORDER BY SUM(v)) AS r FROM T GROUP BY 1",
    "SELECT -k AS k, COUNT(*) AS n, RANK() OVER (ORDER BY k) AS r FROM T GROUP BY k",
    "SELECT 5 AS k, COUNT(*) AS n, RANK() OVER (ORDER BY k) AS r FROM T GROUP BY k",
    "SELECT -k AS g, COUNT(*) AS n, RANK() OVER (ORDER BY g) AS r FROM T GROUP BY g",
    "SELECT k, SUM(v) AS v, SUM(v) - LAG(SUM(v)) OVER (ORDER BY k) AS d FROM T GROUP BY k",
    "SELECT s, k FROM T GROUP BY k, s QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY "
    "COUNT(*) DESC, k) = 1",
    "WITH x AS (SELECT k, MIN(v) AS m, ROW_NUMBER() OVER (ORDER BY MIN(v), k) AS r FROM T GROUP BY "
    "k) SELECT a.k, b.m FROM x a JOIN x b ON a.r = b.r + 1",
    "WITH x AS (SELECT id, v FROM T WHERE v > 0) SELECT id, v / SUM(v) OVER () AS share FROM x",
    "SELECT DISTINCT k, COUNT(*) OVER (PARTITION BY k) AS n FROM T",
    "SELECT a.id, a.r, T.s FROM (SELECT id, RANK() OVER (ORDER BY v) AS r FROM T) a JOIN T "
    "ON a.id = T.id WHERE a.r > 1",
)
rows = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, 0.5, 1.0, -2.25, 7.0]),
        st.sampled_from([None, "a", "b"]),
    ),
    max_size=15,
).map(lambda drawn: [(number, *one) for number, one in enumerate(drawn)])


def table(given_rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*given_rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(round(float(one), 9) if isinstance(one, int | float) else one for one in row)


def answer(table: pa.Table) -> Counter[tuple[Any, ...]]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for *row, _, copies in zip(*(column.to_pylist() for column in table.columns), strict=True):
        counted[plain(row)] += copies
    return +counted


def judge(statement: str, given_rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    with connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.register("T", table(given_rows))
        return Counter(map(plain, connection.execute(statement).fetchall()))


@pytest.mark.parametrize("statement", STATEMENTS)
@given(rows, st.integers(1, 3))
@example([(0, 1, 1.0, "a"), (0, 1, 1.0, "a"), (1, None, None, None)], 2)
@settings(max_examples=25, deadline=None)
def test_windows_say_what_duckdb_says(statement: str, given_rows: list[Row], buckets: int) -> None:
    db = LocalDatabase(buckets)
    db.create_table("T", table(given_rows))
    assert answer(db.sql(statement)) == judge(statement, given_rows)


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SELECT RANK() OVER (PARTITION BY k) FROM T", "needs an ORDER BY", "ORDER BY v DESC"),
        ("SELECT NTILE(0) OVER (ORDER BY k) FROM T", "at least one bucket", ""),
        ("SELECT NTILE(k) OVER (ORDER BY k) FROM T", "a whole number", "write 1"),
        ("SELECT array_agg(v) OVER (ORDER BY k) FROM T", "is not supported with OVER", "GROUP BY"),
        (
            "SELECT SUM(v) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM T",
            "a frame must use ROWS or RANGE",
            "",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE "
            "CURRENT ROW) FROM T",
            "EXCLUDE is not supported",
            "",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) "
            "FROM T",
            "must begin before it ends",
            "",
        ),
        (
            f"SELECT SUM(v) OVER (ORDER BY v RANGE {'9' * 5000} PRECEDING) FROM T",
            "RANGE needs a number",
            "",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY CAST(v AS DECIMAL(5, 2)) RANGE 0.1 PRECEDING) FROM T",
            "exactly one ORDER BY column",
            "",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM T",
            "exactly one ORDER BY column",
            "RANGE BETWEEN",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY v, k RANGE 1 PRECEDING) FROM T",
            "exactly one ORDER BY column",
            "RANGE BETWEEN",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY v RANGE INTERVAL '1' HOUR PRECEDING) FROM T",
            "exactly one ORDER BY column",
            "RANGE BETWEEN",
        ),
        (
            "SELECT SUM(v) OVER (ORDER BY v RANGE BETWEEN k PRECEDING AND CURRENT ROW) FROM T",
            "RANGE needs a number",
            "RANGE BETWEEN",
        ),
        ("SELECT SUM(s) OVER () FROM T", "needs a number", "cast"),
        ("SELECT LAG(v, 1, 'x') OVER (ORDER BY k) FROM T", "different type than the column", ""),
        (
            "SELECT k, RANK() OVER (ORDER BY k) FROM T GROUP BY ROLLUP (k)",
            "rows of exactly one",
            "subquery",
        ),
        ("SELECT s, RANK() OVER (ORDER BY k) FROM T GROUP BY k", "s is neither a key", "MAX"),
        (
            "SELECT SUM(v) AS v, RANK() OVER (ORDER BY v) AS r FROM T GROUP BY k",
            "v is neither a key",
            "MAX",
        ),
        ("SELECT k, RANK() OVER (ORDER BY v) FROM T GROUP BY k", "v is neither a key", "MAX"),
    ],
)
def test_what_cannot_be_is_said_kindly(statement: str, message: str, hint: str) -> None:
    db = LocalDatabase()
    db.create_table("T", table([(0, 1, 1.0, "a")]))
    with pytest.raises(NilometerError, match=message) as caught:
        db.sql(statement)
    assert hint in (caught.value.hint or "")


def test_a_stream_is_joined_with_ranks_of_a_table() -> None:
    db = LocalDatabase()
    db.create_table("T", table([(0, 1, 1.0, "a"), (1, 2, 5.0, "b")]))
    times = pa.array([0, 1_000_000], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    db.create_stream("S", pa.table({"ts": times, "k": [2, 1]}), time="ts")
    query = db.query(
        "SELECT S.k, R.r FROM S [RANGE 5 SECONDS] JOIN "
        "(SELECT k, RANK() OVER (ORDER BY v DESC) AS r FROM T) R ON S.k = R.k"
    )
    first = query.feed({"S": pa.record_batch({"ts": times[:1], "k": [2]})})
    query.restart()
    second = query.feed({"S": pa.record_batch({"ts": times[1:], "k": [1]})})
    rows = pa.concat_tables([first, second]).to_pylist()
    assert [(row["k"], row["r"], row["_diff"]) for row in rows] == [(2, 1, 1)]
