"""Statements in the local runner: cases that were once wrong, or slow, or crashed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase

TIMESTAMP = pa.timestamp("us", tz="UTC")
ROWS = {
    "ts": pa.array([0, 1, 2, 3], TIMESTAMP),
    "k": [0, 1, 2, 3],
    "a": pa.array([0, 1, 2, None], pa.int32()),
    "y": [10.0, 10.0, 5.0, 3.0],
    "s": pa.array([{"x": 0}, {"x": 1}, {"x": 2}, {"x": 3}], pa.struct([("x", pa.int32())])),
}


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=2)
    for name in ("A", "B"):
        made.create_stream(name, pa.table(ROWS), time="ts")
    made.create_stream("Live", pa.table(ROWS).drop(["ts"]))
    made.create_table("T", pa.table({"id": [1, 2], "label": ["one", "two"]}))
    return made


def first_column(table: pa.Table) -> list[Any]:
    return sorted(table.column(0).to_pylist(), key=repr)


OWN_TIME = "every result already has a column _time, the latest time of its rows"
NUMBERS = ", ".join(map(str, range(2, 2000)))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 2 * S.x FROM (SELECT k + 1 AS x FROM A) S WHERE 3 - S.x < 1", [6, 8]),
        ("SELECT A.k FROM A, B WINDOW = 1 S WHERE A.a <> 0 AND 10 div A.a = B.y", [1, 1, 2]),
        (f"SELECT k FROM A WHERE greatest({', '.join(['k'] * 60)}) > 2", [3]),
        ("SELECT greatest(a, 1, k) FROM A", [1, 1, 2, 3]),
        (f"SELECT k FROM A WHERE k IN ({NUMBERS})", [2, 3]),
        ("SELECT A.k FROM A JOIN B ON A.k = B.k AND _time = A.ts WINDOW = 1 S", [0, 1, 2, 3]),
        (
            "SELECT S.k FROM (SELECT A.k FROM A, B WHERE A.k = B.k AND B.ts BETWEEN A.ts AND "
            "A.ts + INTERVAL '5' SECOND) S, A C WINDOW(S, C) = 0 S",
            [0, 1, 2, 3],
        ),
        ("SELECT A.k FROM A, B WINDOW = 0 S WHERE A.s.x = B.y - 1 AND A.s.x < B.k", []),
        ("SELECT label FROM A, T WHERE A.k = T.id", ["one", "two"]),
        ("SELECT A.k FROM A, B WINDOW = 1 S WHERE A.k = B.k AND A.ts < B.ts", []),
        ("SELECT B.k FROM A [ROWS 1], B WINDOW = 1 S WHERE A.k < 2 AND B.k = 3", []),
        (
            "SELECT B.k FROM (SELECT * FROM A WHERE k < 2) X [ROWS 1], B WINDOW = 1 S "
            "WHERE B.k = 3",
            [3],
        ),
        (
            "SELECT C.k FROM (SELECT A.k AS a, B.k AS b FROM A, B WINDOW = 3 MICROSECONDS) S, "
            "A C WINDOW(S, C) = 0 S WHERE S.a = 0 AND S.b = 1",
            [1],
        ),
        ("SELECT X.k FROM A X, Y, Z WINDOW = 0 S", [0, 1, 2, 3]),
    ],
)
def test_answers(db: LocalDatabase, statement: str, expected: list[Any]) -> None:
    assert first_column(db.sql(statement)) == expected


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT X.k FROM A X, Sensors WINDOW = 1 S", "there is no stream or table Sensors"),
        ("SELECT X.k FROM A X JOIN Y ON X.k = Y.k WINDOW = 1 S", "there is no stream or table Y"),
        ("SELECT A.k FROM A, B DWINDOW (A, $1) = 10 S", "there is no stream 1 in this query"),
        (
            "SELECT CASE WHEN A.k > B.'' THEN 'a' ELSE B.k END FROM A, B WINDOW = 1 S",
            "expected the name of a column",
        ),
        (
            "SELECT CASE WHEN soundex(A.k) = 'X' THEN 1 ELSE B.k END FROM A, B WINDOW = 1 S",
            "the function soundex is not available without Spark",
        ),
        ("SELECT k AS _time FROM A", OWN_TIME),
        ("SELECT A._time FROM A, B WINDOW = 1 S", OWN_TIME),
    ],
)
def test_refusals(db: LocalDatabase, statement: str, message: str) -> None:
    with pytest.raises(NilometerError) as caught:
        db.sql(statement)
    assert caught.value.message == message


def test_streams_of_subqueries_count(db: LocalDatabase) -> None:
    queries = ["q0 AS (SELECT k FROM A)"]
    queries += [
        f"q{i} AS (SELECT x.k FROM q{i - 1} x, q{i - 1} y WINDOW = 1 S)" for i in range(1, 8)
    ]
    with pytest.raises(NilometerError, match="a query joins at most 16 streams, got 32"):
        db.plan(f"WITH {', '.join(queries)} SELECT k FROM q7")


def test_the_time_of_arrival_in_conditions(db: LocalDatabase) -> None:
    query = db.query("SELECT k FROM Live WHERE _time + INTERVAL '1' SECOND > _time AND k > 1")
    assert first_column(query.feed({"Live": db.tables["Live"]}, now=5)) == [2, 3]


def test_a_key_compared_as_another_type_keeps_its_own_elsewhere(db: LocalDatabase) -> None:
    db.create_function("letter", lambda x: "abcd"[x], pa.string(), by_row=True)
    statement = (
        "SELECT A.k FROM A, B WINDOW = 1 S WHERE A.s.x = B.y / 5 AND letter(A.s.x) < letter(B.k)"
    )
    assert first_column(db.sql(statement)) == [1]


def test_rows_beside_a_static_table_are_dropped_in_time(db: LocalDatabase) -> None:
    query = db.query(
        "SELECT A.k FROM A [ROWS 2], B, T WINDOW = 5 MICROSECONDS "
        "WHERE A.k = B.k AND A.k = T.id"
    )  # fmt: skip
    for step in range(200):
        times = pa.array(range(10 * step, 10 * step + 10), TIMESTAMP)
        rows = pa.table(ROWS).slice(1, 1).to_batches()[0].take(pa.array([0] * 10))
        rows = rows.set_column(0, "ts", times)
        query.feed({"A": rows, "B": rows})
    held = [bucket.operator.rows_held for bucket in query.stage.buckets]
    assert sum(row[1] for row in held) < 40
