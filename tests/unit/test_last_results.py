"""ROWS windows over the results of a join: the last of them at every instant, by DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.local.database import LocalDatabase
from tests.duck import connect

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])
RESULTS = "(SELECT A.k AS k, A.v AS v, B.v AS w FROM A, B WINDOW(A, B) = 5 us WHERE A.k = B.k)"
Rows = list[tuple[int, int, int]]
OUTER = ("SELECT k, v, w FROM {S}", "SELECT k, COUNT(*) AS n, SUM(w) AS s FROM {S} GROUP BY k")

streams = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 3)), max_size=10
).map(sorted)


def database(a: Rows, b: Rows, execution: str = "auto") -> LocalDatabase:
    db = LocalDatabase(buckets=2, execution=execution)
    for name, rows in (("A", a), ("B", b)):
        db.create_stream(name, pa.Table.from_batches([to_batch(rows)]), time="ts")
    return db


def to_batch(rows: Rows) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 3
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def changes(table: pa.Table) -> list[tuple[Any, ...]]:
    times = table.column("_time").cast(pa.int64())
    table = table.set_column(table.num_columns - 2, "_time", times)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def plain(a: Rows, b: Rows, outer: str, by: str, at: int) -> Counter[tuple[Any, ...]]:
    """The plain query over the last three results until an instant."""
    connection = connect()
    for name, rows in (("A", a), ("B", b)):
        connection.execute(f"CREATE TEMP TABLE {name} (t BIGINT, k BIGINT, v BIGINT)")
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    last = (
        "(SELECT k, v, w FROM (SELECT A.k, A.v, B.v AS w, row_number() OVER "
        f"({by} ORDER BY greatest(A.t, B.t) DESC, A.k DESC, A.v DESC, B.v DESC) AS place FROM A, B "
        f"WHERE A.k = B.k AND abs(A.t - B.t) <= 5 AND greatest(A.t, B.t) <= {at}) "
        "WHERE place <= 3) S"
    )
    answer = connection.sql(outer.format(S=last))
    return Counter(tuple(map(int, row)) for row in answer.fetchall())


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("by", ["", "PARTITION BY k "])
@settings(max_examples=12, deadline=None)
@given(a=streams, b=streams, cut=st.integers(0, 30))
def test_the_last_results_at_every_instant(outer: str, by: str, a: Rows, b: Rows, cut: int) -> None:
    statement = outer.format(S=f"{RESULTS} S [{by}ROWS 3]") + " EMIT CHANGES"
    whole = changes(database(a, b).sql(statement))
    for at in sorted({row[0] for row in (*a, *b)}):
        folded: Counter[tuple[Any, ...]] = Counter()
        for *row, time, diff in whole:
            folded[tuple(row)] += diff if time <= at else 0
        own = by.replace("BY k", "BY A.k")
        assert +folded == plain(a, b, outer, own, at)
        assert min(folded.values(), default=0) >= 0
    query = database([], []).query(statement)
    emitted = []
    for first, last in ((-1, cut), (cut, 99)):
        parts = [[row for row in rows if first < row[0] <= last] for rows in (a, b)]
        emitted += changes(query.feed(dict(zip("AB", map(to_batch, parts), strict=True))))
        query.restart()
    frontier = min(max((row[0] for row in rows), default=-1) for rows in (a, b))
    assert sorted(emitted) == [row for row in whole if row[-2] < frontier]


@pytest.mark.parametrize("execution", ["ita", "tpa", "nta"])
def test_row_by_row_they_are_the_same(execution: str) -> None:
    a = [(0, 1, 1), (3, 1, 2), (9, 1, 3), (50, 2, 0)]
    b = [(1, 1, 4), (4, 1, 5), (9, 1, 6), (50, 3, 0)]
    statement = f"SELECT k, v, w FROM {RESULTS} S [ROWS 2] EMIT CHANGES"
    whole = changes(database(a, b).sql(statement))
    query = database([], [], execution).query(statement)
    emitted = []
    for pair in zip(a, b, strict=True):
        for name, row in zip("AB", pair, strict=True):
            emitted += changes(query.feed({name: to_batch([row])}))
    last = max(row[-2] for row in emitted)  # under ITA the latest result waits for another one
    assert sorted(emitted) == [row for row in whole if row[-2] <= last]
    assert last == max(row[-2] for row in whole) or execution == "ita"
