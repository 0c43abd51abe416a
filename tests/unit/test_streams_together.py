"""UNION ALL of streams in FROM: one stream, wherever a stream can stand; against DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
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
TIME = pa.timestamp("us", tz="UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("ts", TIME), ("k", pa.int64()), ("v", pa.float64())])
TABLE = pa.table({"k": pa.array([0, 1, 1], pa.int64()), "name": ["x", "y", "z"]})
Row = tuple[int, int | None, float | None]
U = "(SELECT ts, k, v FROM S UNION ALL SELECT ts, k + 1, -v FROM R WHERE v < 5)"
STATEMENTS = (
    f"SELECT * FROM {U}",
    f"SELECT k, v * 2 AS w FROM {U} x WHERE x.v > 0",
    "SELECT x.k FROM (SELECT k FROM S UNION ALL (SELECT k FROM R UNION ALL SELECT CAST(v AS INT) "
    "FROM S)) x",
    f"SELECT x.v, T.name FROM {U} x JOIN T ON T.k = x.k",
    f"SELECT x.v, T.name FROM {U} x LEFT JOIN T ON T.k = x.k AND x.v > 0",
    f"SELECT x.v FROM {U} x WHERE x.k NOT IN (SELECT k FROM T)",
    f"SELECT ts, v - LAG(v) OVER (PARTITION BY k ORDER BY ts) AS d FROM {U}",
    f"SELECT date_trunc('second', ts) AS m, k, COUNT(*) AS n, SUM(v) AS s FROM {U} GROUP BY m, k",
    f"WITH u AS {U} SELECT date_trunc('minute', t) AS m, MAX(v) AS v FROM (SELECT ts AS t, v FROM "
    "u WHERE k > 0) GROUP BY ALL",
    f"WITH u AS {U}, w AS (SELECT *, v + 1 AS n FROM u) SELECT date_trunc('second', ts) AS m, "
    "SUM(n) AS n FROM w GROUP BY 1",
)
HELD = (
    "SELECT k, COUNT(*) AS n FROM {U} x [RANGE 2 SECONDS] GROUP BY k",
    "SELECT MAX(v) AS m FROM {U} [RANGE 1 SECOND]",
    "SELECT DISTINCT k FROM {U} x [RANGE 3 SECONDS] WHERE v > 0",
    "SELECT y.k, COUNT(*) AS n FROM (SELECT k FROM {U} x WHERE v > 0) y [RANGE 2 SECONDS] "
    "GROUP BY y.k",
)
rows = st.lists(
    st.tuples(
        st.integers(0, 20).map(lambda t: t * 500_000),
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, 0.5, 1.0, -2.25, 7.0]),
    ),
    max_size=15,
    # Neither the order of rows of one instant nor which of them LAG sees is said.
    unique_by=lambda row: row[0],
).map(sorted)


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def database(first: Sequence[Row], second: Sequence[Row], buckets: int) -> LocalDatabase:
    db = LocalDatabase(buckets)
    db.create_stream("S", pa.Table.from_batches([to_batch(first)]), time="ts")
    db.create_stream("R", pa.Table.from_batches([to_batch(second)]), time="ts")
    db.create_table("T", TABLE)
    return db


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (one.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
        if isinstance(one, datetime)
        else round(float(one), 9)
        if isinstance(one, int | float)
        else one
        for one in row
    )


def answer(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.drop_columns("_time").columns]
    return Counter(map(plain, zip(*columns, strict=True)))


def judge(sql: str, first: Sequence[Row], second: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    with connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("S", pa.Table.from_batches([to_batch(first)]))
        connection.register("R", pa.Table.from_batches([to_batch(second)]))
        connection.register("T", TABLE)
        return Counter(map(plain, connection.execute(sql).fetchall()))


def apart(first: list[Row], second: list[Row]) -> tuple[list[Row], list[Row]]:
    """The second a little later, so that no instant has rows of both."""
    return first, [(time + 1000, k, v) for time, k, v in second]


@pytest.mark.parametrize("statement", STATEMENTS)
@given(rows, rows, st.integers(1, 3), st.lists(st.integers(0, 15), max_size=3))
@settings(max_examples=20, deadline=None)
def test_as_duckdb_says(
    statement: str, given_first: list[Row], given_second: list[Row], buckets: int, cuts: list[int]
) -> None:
    first, second = apart(given_first, given_second)
    right = judge(statement, first, second)
    assert answer(database(first, second, buckets).sql(statement)) == right
    query = database([], [], buckets).query(statement)
    places = [0, *sorted(cuts), 15]
    parts = []
    for begin, end in pairwise(places):
        fed = {"S": to_batch(first[begin:end]), "R": to_batch(second[begin:end])}
        parts.append(query.feed(fed))
        query.restart()
    last: Row = (10**6 * SECOND, None, None)
    parts.append(query.feed({"S": to_batch([last]), "R": to_batch([last])}))
    answered = answer(pa.concat_tables(parts))
    assert right <= answered <= judge(statement, [*first, last], [*second, last])


@pytest.mark.parametrize("statement", HELD)
@given(rows, rows, st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_a_window_behind_is_one_in_every_stream(
    statement: str, given_first: list[Row], given_second: list[Row], buckets: int
) -> None:
    first, second = apart(given_first, given_second)
    length = statement[statement.index("[") : statement.index("]") + 1]
    inside = U.replace("FROM S", f"FROM S {length}").replace("FROM R", f"FROM R {length}")
    db = database(first, second, buckets)
    ours = db.sql(statement.replace("{U}", U)).to_pylist()
    same = db.sql(statement.replace(f" {length}", "").replace("{U}", inside)).to_pylist()
    assert Counter(map(repr, ours)) == Counter(map(repr, same))


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        (
            "SELECT k, COUNT(*) FROM (SELECT k FROM S UNION ALL SELECT k FROM R) GROUP BY k",
            "the subquery has no window",
            "write (SELECT … UNION ALL …) [RANGE 10 SECONDS]",
        ),
        (
            "SELECT k, COUNT(*) FROM (SELECT k FROM S UNION ALL SELECT k FROM R) x GROUP BY k",
            "x has no window",
            "AS x [RANGE 10 SECONDS]",
        ),
        (
            "SELECT * FROM (SELECT k, v FROM S UNION ALL BY NAME SELECT v, k FROM R)",
            "BY NAME",
            "",
        ),
        (
            "SELECT * FROM (SELECT k, v AS k FROM S UNION ALL SELECT k, v FROM R)",
            "the subquery has two columns named k",
            "AS other",
        ),
        (
            "SELECT x.k, COUNT(*) FROM (SELECT k, LAG(v) OVER (ORDER BY ts) AS d FROM S) x "
            "GROUP BY x.k",
            "has no window",
            "write (SELECT …) AS",
        ),
        (
            "SELECT * FROM (SELECT k, ts FROM S UNION ALL SELECT ts, k FROM R)",
            "the same column types",
            "(k BIGINT, ts TIMESTAMP) and (ts TIMESTAMP, k BIGINT)",
        ),
        (
            "SELECT x.k FROM (SELECT k FROM S UNION ALL SELECT k FROM R) x, S WHERE x.k = S.k "
            "WINDOW = 1 SECOND",
            "cannot be joined with other streams",
            "",
        ),
        (
            "SELECT COUNT(*) FROM TUMBLE((SELECT v, k FROM S UNION ALL SELECT v, k FROM R), "
            "DESCRIPTOR(k), INTERVAL '1' SECOND) GROUP BY window_end",
            "",
            "time",
        ),
    ],
)
def test_what_cannot_be_is_said(statement: str, message: str, hint: str) -> None:
    with pytest.raises(NilometerError) as caught:
        database([], [], 1).sql(statement)
    assert message in str(caught.value)
    assert hint in str(caught.value)
