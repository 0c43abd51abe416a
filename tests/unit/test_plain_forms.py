"""Forms of standard SQL that mean others, against DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.unit.test_pivots import counted
from tests.unit.test_table_over import Row, judge, rows, table

STATEMENTS = (
    "SELECT id FROM T WHERE k = ANY (SELECT k FROM T WHERE v > 0)",
    "SELECT id FROM T WHERE s = SOME (SELECT s FROM T WHERE k = 1) OR v > 1",
    "SELECT id FROM T WHERE s <> ALL (SELECT s FROM T WHERE k = 1)",
    "SELECT id FROM T WHERE NOT (s <> ALL (SELECT s FROM T WHERE k = 0)) AND v > 0",
    "SELECT id, (id, 1) = (k, 1) OR id > 5 AS a FROM T WHERE k IS NOT NULL",
    "SELECT a.id, b.s FROM T a JOIN T b ON (a.id, 1) = (b.id, b.k)",
    "SELECT id FROM T WHERE (id, 2) <> (1, 2) AND NOT (id, 3) = (4, 3)",
    "SELECT id, v FROM T ORDER BY v DESC, id FETCH FIRST 3 ROWS ONLY",
    "SELECT id FROM T ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
    "SELECT id FROM T ORDER BY id DESC FETCH FIRST ROW ONLY",
)


@pytest.mark.parametrize("statement", STATEMENTS)
@given(rows)
@settings(max_examples=20, deadline=None)
def test_they_say_what_duckdb_says(statement: str, given_rows: list[Row]) -> None:
    db = LocalDatabase(2)
    db.create_table("T", table(given_rows))
    assert counted(db.sql(statement)) == judge(statement, given_rows)


def test_patterns_are_asked_one_by_one() -> None:
    db = nm.connect()
    db.create_table("T", pa.table({"s": ["ab", "b", None]}))
    asked = (
        "s LIKE ANY ('a%', 'c')",
        "s NOT LIKE ANY ('a%', 'b')",
        "s ILIKE ALL ('A%', '%B')",
        "s NOT LIKE ALL ('a%', 'c')",
        "NOT s LIKE ANY ('a%')",
        "s LIKE ALL ('a%', '%b', NULL)",
    )
    listed = ", ".join(f"{one} AS c{number}" for number, one in enumerate(asked))
    answer = db.sql(f"SELECT {listed} FROM T WHERE s IS NOT NULL ORDER BY s")
    assert [list(row.values()) for row in answer.to_pylist()] == [
        [True, True, True, False, False, None],
        [False, True, False, True, True, False],
    ]


def test_rows_with_nulls_are_compared_value_by_value() -> None:
    table = pa.table({"a": [1, None, None, 1], "b": [2, 2, 3, None]})
    db = nm.connect()
    db.create_table("T", table)
    asked = db.sql("SELECT (a, b) = (1, 2) AS same, (a, b) <> (1, 2) AS other FROM T")
    pairs = {(one["same"], one["other"]) for one in asked.to_pylist()}
    assert pairs == {(True, False), (None, None), (False, True)}


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("id > ALL (SELECT id FROM T)", "only = ANY and <> ALL compare", "SELECT MAX(v)"),
        ("id = ALL (SELECT id FROM T)", "only = ANY and <> ALL compare", "SELECT MAX(v)"),
        ("(id, k) = (1, 2, 3)", "2 values are compared with 3", "(a, b) = (1, 2)"),
        ("() = ()", "0 values are compared with 0", "(a, b) = (1, 2)"),
    ],
)
def test_refusals(condition: str, message: str, hint: str) -> None:
    db = LocalDatabase(1)
    db.create_table("T", table([]))
    with pytest.raises(NilometerError) as error:
        db.sql(f"SELECT id FROM T WHERE {condition}")
    assert error.value.message.startswith(message)
    assert hint in (error.value.hint or "")
