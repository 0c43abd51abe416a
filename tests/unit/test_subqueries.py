"""Subqueries, sets of keys and first rows in statements that people write, beside DuckDB.

Generated ones, at every instant and streamed, are in test_generated_changes.
"""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.change_oracle import canonical

SECOND = 1_000_000
END = 4 * SECOND


def times(*seconds: int) -> pa.Array:
    return pa.array([one * SECOND for one in seconds], pa.timestamp("us", "UTC"))


def whole(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


A = pa.table(
    {"ts": times(0, 1, 2, 3, 4), "k": whole(1, 2, None, 1, 3), "x": [1.0, 2.0, 3.0, 4.0, 5.0]}
)
B = pa.table(
    {"ts": times(0, 1, 2, 3, 4), "k": whole(1, 1, 2, 4, 1), "y": [10.0, 20.0, 30.0, 40.0, 50.0]}
)
C = pa.table(
    {
        "ts": times(0, 1, 2, 3, 4, 4),
        "k": whole(1, 1, 2, None, 1, 2),
        "x": whole(1, 2, 1, 1, None, 1),
        "y": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    }
)
ROOMS = pa.table({"k": whole(1, 2), "name": ["one", "two"]})
NULLS = pa.table({"k": whole(1, None)})
STREAMS, TABLES = {"A": A, "B": B, "C": C}, {"Rooms": ROOMS, "Nulls": NULLS}

QUESTIONS = (
    "SELECT x, (SELECT MAX(y) FROM B []) AS m FROM A []",
    "SELECT x FROM A [] WHERE x > (SELECT AVG(x) FROM A [])",
    "SELECT k, x, (SELECT SUM(y) FROM B [] WHERE B.k = A.k) AS s FROM A []",
    "SELECT k, x, (SELECT COUNT(*) FROM B [] WHERE B.k = A.k) AS s FROM A []",
    "SELECT k, (SELECT COUNT(*) + MAX(y) FROM B [] WHERE B.k = A.k AND y > 15) AS s FROM A []",
    "SELECT x, (SELECT MAX(y) FROM B [] WHERE B.k > A.k) AS f FROM A []",
    "SELECT x, (SELECT COUNT(*) FROM B [] WHERE B.ts < A.ts) AS f FROM A []",
    "SELECT x, (SELECT MAX_BY(y, B.ts) FROM B [] WHERE B.ts <= A.ts AND B.k = A.k) AS f FROM A []",
    "SELECT x, (SELECT COUNT(*) FROM B [] WHERE A.k IS NULL OR B.k = A.k) AS f FROM A []",
    "SELECT x, (SELECT SUM(y * A.x) FROM B [] WHERE B.k = A.k) AS f FROM A []",
    "SELECT x, (SELECT y FROM B [] ORDER BY y LIMIT 1) AS f FROM A []",
    "SELECT x, (SELECT COUNT(*) FROM Rooms) + (SELECT COUNT(*) FROM Nulls) AS w FROM A",
    "SELECT x, (SELECT MAX(name) FROM Rooms R WHERE R.k = A.k) AS f FROM A",
    "SELECT x FROM A WHERE x > (SELECT MAX(k) FROM Rooms)",
    "SELECT k, x FROM A [] WHERE x > 4 OR EXISTS (SELECT 1 FROM B [] WHERE B.k = A.k)",
    "SELECT k, x FROM A [] WHERE NOT (x > 4 OR EXISTS (SELECT 1 FROM B [] WHERE B.k = A.k))",
    "SELECT k, EXISTS (SELECT 1 FROM B [] WHERE B.y > 10 * A.x) AS i FROM A []",
    "SELECT x, CASE WHEN EXISTS (SELECT 1 FROM Rooms R WHERE R.k = A.k) THEN 'known' END AS w "
    "FROM A",
    "SELECT k, x FROM A [] WHERE EXISTS (SELECT 1 FROM B [] WHERE B.k = A.k AND EXISTS "
    "(SELECT 1 FROM Rooms R WHERE R.k = B.k AND R.k = A.k))",
    "SELECT k, x FROM A [] WHERE EXISTS (SELECT 1 FROM B [] WHERE NOT EXISTS "
    "(SELECT 1 FROM Rooms R WHERE R.k = B.k AND A.x > 2))",
    "SELECT k, x FROM A [] WHERE k IN (SELECT k FROM B []) OR x = 3",
    "SELECT k, x FROM A [] WHERE k NOT IN (SELECT k FROM B [])",
    "SELECT k, x FROM A [] WHERE k NOT IN (SELECT k FROM Nulls)",
    "SELECT k, x FROM A [] WHERE k NOT IN (SELECT k FROM Nulls WHERE k = 7)",
    "SELECT k, k IN (SELECT k FROM B []) AS i, k NOT IN (SELECT k FROM Nulls) AS j FROM A []",
    "SELECT x FROM A [] WHERE (k, x) IN (SELECT k, y / 10 FROM B [])",
    "SELECT x FROM A [] WHERE (k, x) NOT IN (SELECT k, y / 10 FROM B [])",
    "SELECT x FROM A WHERE (k, x) IN ((1, 1.0), (3, 5.0))",
    "SELECT x FROM A WHERE (k, x) NOT IN ((1, 1.0), (3, 5.0))",
    "SELECT x FROM A WHERE k IN (SELECT k FROM Rooms) OR x > 4",
    "SELECT x FROM A [] WHERE x * 10 < (SELECT MAX(y) FROM B [] WHERE B.k = A.k) AND k IN "
    "(SELECT k FROM Rooms)",
    "SELECT k, SUM(x) AS s, (SELECT SUM(x) FROM A []) AS t FROM A [] GROUP BY k",
    "SELECT k, SUM(x) / (SELECT SUM(x) FROM A []) AS share FROM A [] GROUP BY k",
    "SELECT k, SUM(x) AS s FROM A [] GROUP BY k HAVING SUM(x) > (SELECT AVG(x) FROM A [])",
    "SELECT k, COUNT(*) AS n FROM A [] GROUP BY k HAVING COUNT(*) > "
    "(SELECT COUNT(*) FROM Rooms R WHERE R.k = A.k)",
    "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM B []) AS m FROM A []",
    "SELECT k, MAX(x) AS m FROM A [] WHERE x < (SELECT COUNT(*) FROM B []) GROUP BY k",
    "SELECT DISTINCT (SELECT COUNT(*) FROM Rooms) AS c, k FROM A []",
    "SELECT k, x FROM A [] ORDER BY x - (SELECT AVG(y) FROM B []) LIMIT 2",
    "WITH t AS (SELECT k, SUM(x) AS s FROM A [] GROUP BY k) SELECT k FROM t WHERE s = "
    "(SELECT MAX(s) FROM t)",
    "SELECT A.x, R.name, (SELECT COUNT(*) FROM B [] WHERE B.k = R.k) AS c FROM A [] "
    "LEFT JOIN Rooms R ON A.k = R.k",
    "SELECT k, x, COUNT(*) AS n, SUM(y) AS s FROM C [] GROUP BY ROLLUP(k, x)",
    "SELECT k, x, COUNT(*) AS n, GROUPING(k) AS g, GROUPING_ID(k, x) AS h FROM C [] "
    "GROUP BY CUBE(k, x)",
    "SELECT k, x, COUNT(*) AS n FROM C [] GROUP BY GROUPING SETS((k, x), (k), ())",
    "SELECT k, x, COUNT(*) AS n FROM C [] GROUP BY GROUPING SETS((k), (k), (x))",
    "SELECT k, x, COUNT(*) AS n FROM C [] GROUP BY k, ROLLUP(x)",
    "SELECT k + 1 AS kk, COUNT(*) AS n, SUM(k) AS s FROM C [] GROUP BY ROLLUP(k + 1)",
    "SELECT k, COUNT(*) AS n FROM C [] GROUP BY ROLLUP(k) HAVING GROUPING(k) = 0 AND COUNT(*) > 1",
    "SELECT k, x, COUNT(*) AS n FROM C [] GROUP BY ALL",
    "SELECT x FROM A [] SEMI JOIN B [] ON A.k = B.k",
    "SELECT x FROM A [] SEMI JOIN B [] USING (k)",
    "SELECT x FROM A [] ANTI JOIN B [] ON A.k = B.k AND B.y > 15",
    "SELECT x, name FROM A [] SEMI JOIN B [] ON A.k = B.k JOIN Rooms R ON A.k = R.k",
    "SELECT x FROM A SEMI JOIN Rooms USING (k)",
    "SELECT x FROM A ANTI JOIN Rooms R ON A.k = R.k",
    "SELECT x, name FROM A [] NATURAL JOIN Rooms",
    "SELECT x, name FROM A NATURAL JOIN Rooms",
    "SELECT * FROM (SELECT k, x FROM A []) a NATURAL LEFT JOIN Rooms",
    "SELECT x + 1 AS z, z * 2 AS w, w - z AS v FROM A",
    "SELECT k, SUM(x) AS s, s / 2 AS h FROM A [] GROUP BY k",
    "SELECT LAG(x) OVER (PARTITION BY k ORDER BY ts) AS p, x - p AS d, d * 2 AS e FROM A",
    "SELECT k, x FROM A [] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 1",
    "SELECT k, y, ROW_NUMBER() OVER (PARTITION BY k ORDER BY y DESC) AS rn FROM C [] "
    "QUALIFY rn <= 2",
    "SELECT * FROM (SELECT k, y, ROW_NUMBER() OVER (ORDER BY y) AS rn FROM C []) a WHERE rn < 4",
    "SELECT k, s FROM (SELECT k, SUM(y) AS s FROM C [] GROUP BY k) g "
    "QUALIFY ROW_NUMBER() OVER (ORDER BY s DESC) = 2",
    "SELECT k, SUM(y) AS s FROM C [] GROUP BY k "
    "QUALIFY ROW_NUMBER() OVER (ORDER BY SUM(y) DESC) = 2",
    "SELECT k, x, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY C.k ORDER BY MAX(y), x) AS r "
    "FROM C [] GROUP BY k, x HAVING COUNT(*) > 0 QUALIFY r < 3",
    "SELECT A.k, MAX(B.y) AS m FROM A [], B [] WHERE A.k = B.k GROUP BY A.k "
    "QUALIFY ROW_NUMBER() OVER (ORDER BY MAX(B.y)) <= 1",
    "WITH g AS (SELECT k, SUM(y) AS s FROM C [] GROUP BY k) SELECT k, s FROM g "
    "QUALIFY 3 > ROW_NUMBER() OVER (ORDER BY s DESC)",
    "SELECT y + 1 AS z, ROW_NUMBER() OVER (PARTITION BY x ORDER BY y) AS rn FROM C [] "
    "WHERE y > 15 AND k > 0 QUALIFY rn BETWEEN 1 AND 2",
)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    made = LocalDatabase()
    for name, rows in STREAMS.items():
        made.create_stream(name, rows, time="ts")
    for name, rows in TABLES.items():
        made.create_table(name, rows)
    return made


def answer(db: LocalDatabase, sql: str) -> list[Any]:
    """All rows that were appended, or those that hold at the end."""
    table = db.sql(sql.replace("[]", "[RANGE 1 HOUR]"))
    rows = table.to_pylist()
    if "_diff" not in table.schema.names:
        return sorted(repr(canonical(list(row.values())[:-1])) for row in rows)
    held: dict[str, int] = {}
    for row in rows:
        diff, time = row.pop("_diff"), row.pop("_time")
        if time.timestamp() * SECOND <= END:
            shown = repr(canonical(row.values()))
            held[shown] = held.get(shown, 0) + diff
    return sorted(row for row, count in held.items() for _ in range(count))


@pytest.fixture(scope="module")
def judge() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET default_null_order = 'nulls_first'")
    for name, rows in {**STREAMS, **TABLES}.items():
        connection.register(name, rows)
    return connection


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_answer_is_that_of_plain_sql(
    db: LocalDatabase, judge: duckdb.DuckDBPyConnection, sql: str
) -> None:
    right = judge.execute(sql.replace("[]", "")).fetchall()
    assert answer(db, sql) == sorted(repr(canonical(row)) for row in right)


def test_first_rows_of_each_window(db: LocalDatabase) -> None:
    table = db.sql(
        "SELECT window_end, k, y FROM TUMBLE(TABLE C, DESCRIPTOR(ts), INTERVAL '2' SECONDS) "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY y DESC) <= 1"
    )
    assert table.schema.names == ["window_end", "k", "y", "_time"]
    assert sorted(table["y"].to_pylist()) == [20.0, 40.0, 60.0]


def test_the_largest_groups_of_each_window(db: LocalDatabase) -> None:
    windows = "TUMBLE(TABLE C, DESCRIPTOR(ts), INTERVAL '2' SECONDS)"
    number = "ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY {} DESC) <= 1"
    one = db.sql(
        f"SELECT window_end, k, MAX(y) AS m FROM {windows} GROUP BY window_end, k "
        f"QUALIFY {number.format('MAX(y)')}"
    )
    two = db.sql(
        f"SELECT * FROM (SELECT window_end, k, MAX(y) AS m FROM {windows} "
        f"GROUP BY window_end, k) g QUALIFY {number.format('m')}"
    )
    assert one.num_rows == 3
    assert one.to_pylist() == two.to_pylist()


@pytest.mark.parametrize(
    ("sql", "said", "hint"),
    [
        ("SELECT (SELECT y FROM B []) AS f FROM A []", "may return several rows", "aggregate"),
        ("SELECT (SELECT MAX(y), MIN(y) FROM B []) AS f FROM A []", "one column, got 2", ""),
        ("SELECT x FROM A [] WHERE (k, x) IN (SELECT k FROM B [])", "2 columns, got 1", "select"),
        ("SELECT x FROM A [] WHERE (k, x) IN ((1, 2, 3))", "compares 2 values with 3", "(1, 2)"),
        ("SELECT SUM(x) AS s, MAX(s) AS t FROM A []", "aggregates cannot be nested", "subquery"),
        ("SELECT k, COUNT(*) FROM A [] GROUP BY k HAVING GROUPING(k) = 0", "GROUPING SETS", ""),
        ("SELECT k, GROUPING(x) FROM C [] GROUP BY ROLLUP(k)", "needs keys of GROUP BY", ""),
        (
            "SELECT 1 AS o FROM C [] GROUP BY CUBE(k, x, y, ts, k+1, x+1, y+1)",
            "64 grouping sets",
            "list",
        ),
        ("SELECT x FROM A [] NATURAL JOIN (SELECT y FROM B []) b", "no common column", "ON"),
        (
            "SELECT x FROM A [] JOIN B [] ON A.k = B.k SEMI JOIN Rooms USING (k)",
            "k is ambiguous",
            "ON",
        ),
        (
            "SELECT x FROM A [] SEMI JOIN Rooms USING (k) FULL JOIN B [] ON A.k = B.k",
            "SEMI JOIN cannot be combined with",
            "subquery",
        ),
        (
            "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS r FROM A []",
            "needs an upper limit",
            "QUALIFY",
        ),
        (
            "SELECT k FROM A [] QUALIFY ROW_NUMBER() OVER (ORDER BY x DESC) <= 1000",
            "the first 100 rows",
            "lower limit",
        ),
        (
            "SELECT x FROM A [] WHERE EXISTS (SELECT 1 FROM B A [] WHERE A.k = 1 AND EXISTS "
            "(SELECT 1 FROM Rooms R WHERE R.k = A.k AND x > 1))",
            "also a name in the enclosing query",
            "AS other",
        ),
    ],
)
def test_what_cannot_be_asked_is_said(db: LocalDatabase, sql: str, said: str, hint: str) -> None:
    with pytest.raises(NilometerError) as error:
        db.sql(sql.replace("[]", "[RANGE 1 HOUR]"))
    assert said in error.value.message
    assert hint in (error.value.hint or "")


def test_nobody_sees_the_columns_that_stand_for_subqueries(db: LocalDatabase) -> None:
    table = db.sql("SELECT * FROM A WHERE x > (SELECT MAX(k) FROM Rooms) OR k = 1")
    assert table.schema.names == ["ts", "k", "x", "_time"]
    assert re.search("subquery#|group#", str(table.schema)) is None
