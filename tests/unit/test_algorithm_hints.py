"""`SELECT /*+ BEW */ …`: an algorithm of the papers in the place of the join."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.statements import ExplainFormat
from nilometer_papers.algorithms.registry import ALGORITHMS

SECOND = 1_000_000
JOIN = "SELECT {hint} A.k, A.v, B.v FROM A, B WINDOW = 2 SECONDS WHERE A.k = B.k AND A.v <= B.v"
CHAIN = "SELECT {hint} A.v, B.v, C.v FROM A, B, C WINDOW = 2 S WHERE A.k = B.k AND B.v = C.v"
NO_KEY = "SELECT {hint} A.v, B.v FROM A, B WINDOW = 1 SECOND"
INNER = "SELECT {hint} S.v, C.v FROM (SELECT A.v FROM A, B WINDOW = 1 S) S, C WINDOW(S, C) = 1 S"
UNION = "SELECT {hint} A.v FROM A, B WINDOW = 1 S UNION ALL SELECT B.v FROM B, C WINDOW = 2 S"


def rows(first: int, last: int) -> pa.RecordBatch:
    numbers = range(first, last)
    columns = {
        "ts": pa.array([n * SECOND // 2 for n in numbers], pa.timestamp("us", "UTC")),
        "k": pa.array([str(n % 3) if n % 5 else None for n in numbers]),
        "v": pa.array([n * 7 % 4 for n in numbers]),
    }
    return pa.RecordBatch.from_pydict(columns)


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=2)
    for name in "ABC":
        made.create_stream(name, pa.table(rows(0, 12)), time="ts")
    return made


@pytest.mark.parametrize("statement", [JOIN, CHAIN, NO_KEY, UNION])
@pytest.mark.parametrize("name", ["BEW", "mw"])
def test_a_hint_changes_no_answer(db: LocalDatabase, statement: str, name: str) -> None:
    plain, hinted = (statement.format(hint=hint) for hint in ("", f"/*+ {name} */"))
    expected = sorted(map(tuple, rows_of(db.sql(plain))))
    assert expected
    assert sorted(map(tuple, rows_of(db.sql(hinted)))) == expected
    query, results = db.query(hinted), []
    for first in range(0, 12, 4):
        query.restart()
        results += rows_of(query.feed({name: rows(first, first + 4) for name in "ABC"}))
    assert sorted(map(tuple, results)) == expected


def rows_of(table: pa.Table) -> list[list[object]]:
    return [
        list(row.values())
        for row in table.rename_columns(list("abcdef")[: table.num_columns]).to_pylist()
    ]


def test_explain_names_the_algorithm_and_its_paper(db: LocalDatabase) -> None:
    plan = db.plan(JOIN.format(hint="/*+ BEW */"))
    lines = explain_plan(plan).splitlines()
    assert "Algorithm: BEW (SSDBM section 3.1), one tuple at a time" in lines
    assert "     until BEW removes it" in lines
    assert not any(line.startswith(("Kernel:", "Probe order")) for line in lines)
    assert "window join\\nBEW\\n" in explain_plan(plan, ExplainFormat.DOT)


def refused(db: LocalDatabase, statement: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        db.plan(statement)
    place = caught.value.place
    assert place is not None
    assert statement[place.start : place.end].startswith("/*+")
    return caught.value


def test_unknown_algorithms_are_refused_with_those_there_are(db: LocalDatabase) -> None:
    error = refused(db, JOIN.format(hint="/*+ BWE */"))
    assert error.message == "there is no algorithm 'BWE'"
    assert error.hint == f"choose {', '.join(ALGORITHMS)}"


def test_a_hint_behind_another_select_is_refused_where_it_stands(db: LocalDatabase) -> None:
    first = "(SELECT /*+ BEW */ A.v FROM A, B WINDOW = 1 S)"
    statement = f"{first} UNION ALL SELECT /*+ MW */ B.v FROM B, C WINDOW = 2 S"
    place = refused(db, statement).place
    assert place is not None
    assert statement[place.start : place.end] == "/*+ MW */"


def test_windows_and_keys_that_an_algorithm_cannot_take(db: LocalDatabase) -> None:
    error = refused(db, "SELECT /*+ BEW */ A.k FROM A, B DWINDOW(A, B) = 1 SECOND")
    assert error.message == "BEW cannot take these windows"
    assert error.detail == "it takes one window for all pairs of streams"
    error = refused(db, NO_KEY.format(hint="/*+ BEW_HASH */"))
    assert error.message == "BEW_HASH needs a key that all streams have in common"
    error = refused(db, CHAIN.format(hint="/*+ BEW_HASH */"))
    assert error.message == "BEW_HASH needs a key that all streams have in common"


def test_a_subquery_is_joined_by_the_algorithm_if_it_takes_the_windows(db: LocalDatabase) -> None:
    error = refused(db, INNER.format(hint="/*+ BEW */"))
    assert error.message == "BEW cannot take these windows"
    answer, expected = (db.sql(INNER.format(hint=hint)) for hint in ("/*+ GCA */", ""))
    assert sorted(rows_of(answer)) == sorted(rows_of(expected))
    assert len(expected)
