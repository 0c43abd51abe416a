"""What statements whose answers change may say: functions, stars, windows, names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase
from nilometer.model.expressions import Argument, Negative
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.plan.changes_plan import (
    ChangesPlan,
)
from nilometer.sql.statements import read_query
from tests.plan_nodes import (
    SCHEMA,
    as_a,
    make_database,
    names,
    root_of,
)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    return make_database()


class EngineOfTables:
    """An engine that knows streams and tables only, as Spark does."""

    time_zone = "UTC"

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        assert relation in ("A", "B", "C", "W"), relation
        return [pa.int32() for _ in expressions]


def planned_with_engine(db: LocalDatabase, sql: str) -> ChangesPlan:
    catalog = db.plan("SELECT k FROM A").catalog
    plan = compile_statement(
        read_query(sql), Catalog(catalog.relations, catalog.functions, EngineOfTables()), 1
    )
    assert isinstance(plan, ChangesPlan)
    return plan


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SOUNDEX(MAX(s)) FROM A [RANGE 1 S]",
        "SELECT k FROM A [RANGE 1 S] GROUP BY k HAVING SOUNDEX(MAX(s)) > 'A'",
        "SELECT k FROM A [RANGE 1 S] GROUP BY k ORDER BY SOUNDEX(MAX(s)) LIMIT 1",
        "SELECT SOUNDEX(s) FROM (SELECT DISTINCT s FROM A [RANGE 1 S]) S",
        "SELECT 1 FROM (SELECT DISTINCT s FROM A [RANGE 1 S]) S WHERE SOUNDEX(s) = 'A'",
        "SELECT 1 FROM A [RANGE 1 S] a LEFT JOIN B [RANGE 1 S] b ON a.k = b.k "
        "WHERE SOUNDEX(b.s) = a.s",
        "SELECT 1 FROM A [RANGE 1 S] a, (SELECT DISTINCT s FROM B [RANGE 1 S]) b "
        "WHERE a.s = SOUNDEX(b.s)",
        "SELECT 1 FROM A [RANGE 1 S] a WHERE EXISTS "
        "(SELECT 1 FROM B [RANGE 1 S] b WHERE b.s = SOUNDEX(a.s))",
    ],
)
def test_the_engine_is_not_asked_of_rows_that_it_does_not_see(db: LocalDatabase, sql: str) -> None:
    for compiled in (lambda: planned_with_engine(db, sql), lambda: db.plan(sql)):
        with pytest.raises(SqlError) as caught:
            compiled()
        assert caught.value.message == "the function soundex is not available here"
        assert caught.value.place is not None
        place = caught.value.place
        assert sql[place.start : place.start + 8] == "SOUNDEX("


def test_what_is_evaluated_here_stands_above_aggregates_and_outer_joins(db: LocalDatabase) -> None:
    node = root_of(
        db,
        "SELECT k, COALESCE(SUM(v), 0) AS t, ROUND(AVG(v), 1) AS r, CAST(COUNT(*) AS STRING) AS c, "
        "LEAST(MIN(v), 1) AS l, MAX(s) || '!' AS x, LENGTH(MAX(s)) AS n, FLOOR(MAX(v)) AS f "
        "FROM A [RANGE 1 S] GROUP BY k HAVING NULLIF(COUNT(*), 1) > 0",
    )
    double, text = pa.float64(), pa.string()
    assert [one.kind for one in node.columns[1:]] == [
        *(double, double, text, double, text),
        *(pa.int32(), pa.int64()),
    ]
    outer = root_of(
        db,
        "SELECT IFNULL(b.v, -1) AS v FROM A [RANGE 1 S] a LEFT JOIN B [RANGE 1 S] b ON a.k = b.k",
    )
    assert outer.columns[0].kind == double


@pytest.fixture
def with_months() -> LocalDatabase:
    """A stream and a table with a column of a type that has no Arrow form."""
    made = LocalDatabase()
    made.create_stream("A", SCHEMA.empty_table(), time="ts")
    made.create_stream("Y", SCHEMA.empty_table(), time="ts")
    made.create_table("T", SCHEMA.empty_table())
    for name in ("Y", "T"):
        known = made._relations[name]
        made._relations[name] = replace(
            known, columns=(*known.columns, "ym"), types=(*known.types, None)
        )
    return made


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT ym FROM Y", "Y.ym"),
        ("SELECT * FROM Y", "Y.ym"),
        ("SELECT * FROM Y [RANGE 1 S] EMIT CHANGES", "Y.ym"),
        ("SELECT DISTINCT * FROM Y [RANGE 1 S]", "Y.ym"),
        ("SELECT * FROM Y [ROWS 1] EMIT CHANGES", "Y.ym"),
        ("SELECT * FROM T EMIT CHANGES", "T.ym"),
        ("SELECT k FROM (SELECT * FROM Y) S", "S.ym"),
        ("SELECT y.* FROM A [RANGE 1 S] a LEFT JOIN Y [RANGE 1 S] y ON a.k = y.k", "y.ym"),
        ("SELECT y.ym FROM A [RANGE 1 S] a LEFT JOIN Y [RANGE 1 S] y ON a.k = y.k", "y.ym"),
        ("SELECT Y.* FROM Y [ROWS 1] WHERE EXISTS (SELECT 1 FROM A [ROWS 1])", "Y.ym"),
    ],
)
def test_stars_over_columns_that_cannot_be_used(
    with_months: LocalDatabase, sql: str, column: str
) -> None:
    with pytest.raises(SqlError, match=f"column {column} cannot be used"):
        with_months.plan(sql)


def test_columns_that_cannot_be_used_may_be_there(with_months: LocalDatabase) -> None:
    joined = "A [RANGE 1 S] a LEFT JOIN Y [RANGE 1 S] y ON a.k = y.k"
    assert names(root_of(with_months, f"SELECT a.* FROM {joined}")) == SCHEMA.names
    assert names(root_of(with_months, f"SELECT * EXCEPT (ym) FROM {joined}")) == SCHEMA.names * 2
    root_of(with_months, "SELECT k FROM A [ROWS 1] WHERE EXISTS (SELECT * FROM Y [ROWS 1] y)")


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT COUNT(*) FROM A [RANGE 5 S] WINDOW = 3 S", "A has two windows"),
        ("SELECT COUNT(*) FROM A [ROWS 5] WINDOW = 3 S", "A has two windows"),
        ("SELECT COUNT(*) FROM (SELECT k FROM A [RANGE 5 S]) S WINDOW = 3 S", "S has two windows"),
        ("SELECT COUNT(*) FROM W WINDOW = 3 S", "this window has no stream"),
    ],
)
def test_a_window_is_not_ignored(db: LocalDatabase, sql: str, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        db.plan(sql)
    assert caught.value.message == text


def test_order_by_computes_with_names_of_the_list(db: LocalDatabase) -> None:
    top = root_of(
        db, "SELECT k, COUNT(*) AS n FROM A [RANGE 1 S] GROUP BY k ORDER BY -n, k LIMIT 1"
    )
    assert names(top) == ["k", "n"]
    below = as_a(TopRowsSpec, top.inputs[0])
    assert [key.column for key in below.spec.order] == [2, 0]
    assert as_a(AggregateSpec, below.inputs[0]).spec.values[2] == Negative(Argument(1))
    plain = as_a(
        TopRowsSpec,
        root_of(db, "SELECT k + 1 AS v FROM A [RANGE 1 S] ORDER BY -v LIMIT 1").inputs[0],
    )
    assert names(plain.inputs[0]) == ["v", "-A.v"]  # columns of FROM come first


def test_a_stream_around_exists_may_be_named_like_a_column_inside(db: LocalDatabase) -> None:
    named = "SELECT 1 FROM A [RANGE 1 S] s WHERE EXISTS (SELECT 1 FROM C [RANGE 1 S] c WHERE {})"
    root_of(db, named.format("c.k > s.k"))
    with pytest.raises(SqlError, match="there is no field k in A.s"):
        db.plan("SELECT 1 FROM A [RANGE 1 S] WHERE s.k > 1 EMIT CHANGES")


def test_explain_is_answered_with_its_text(db: LocalDatabase) -> None:
    answer = db.sql("EXPLAIN SELECT COUNT(*) FROM A [RANGE 1 S]")
    assert answer.column_names == ["plan"]
    assert answer.num_rows == 1
    assert "A" in answer["plan"][0].as_py()
