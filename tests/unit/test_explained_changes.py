"""EXPLAIN of answers that change: operators, stages, executions; and their errors."""

from __future__ import annotations

import pytest

from nilometer.errors import NilometerError, SqlError
from nilometer.local.database import LocalDatabase
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.physical.stages import cut_into_stages
from nilometer.sql.plan.changes_plan import (
    ChangesPlan,
)
from nilometer.sql.statements import ExplainFormat
from tests.plan_nodes import (
    make_database,
)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    return make_database()


EXPLAINED = [
    "SELECT k, SUM(v) FROM A [RANGE 10 S] WHERE v > 3 GROUP BY k HAVING SUM(v) > 100",
    "SELECT k FROM A UNION ALL SELECT k FROM B",
    "SELECT A.k, W.why FROM A [PARTITION BY s ROWS 3] LEFT JOIN W ON A.k = W.k",
    "SELECT k FROM A [RANGE 1 S] WHERE NOT EXISTS (SELECT 1 FROM B [RANGE 1 S] WHERE B.k = A.k) "
    "ORDER BY v DESC LIMIT 3 OFFSET 1 EMIT CHANGES EVERY 5 S",
    "SELECT A.k, COUNT(DISTINCT B.v), PERCENTILE(B.v, 0.9) FROM A, B, C WINDOW = 5 S "
    "WHERE A.k = B.k AND B.k = C.k AND A.v + B.v + C.v > 100 AND A.s LIKE 'a long text%' "
    "GROUP BY 1",
]


@pytest.mark.parametrize("sql", EXPLAINED)
def test_explained_plans_fit_on_a_screen(db: LocalDatabase, sql: str) -> None:
    plan = db.plan(sql)
    assert max(map(len, explain_plan(plan).splitlines())) <= 88
    drawn = explain_plan(plan, ExplainFormat.DOT)
    assert drawn.startswith("digraph plan {")
    assert drawn.count("{") == drawn.count("}")


def test_the_tree_of_operators_is_shown(db: LocalDatabase) -> None:
    assert (
        explain_plan(db.plan(EXPLAINED[0]))
        == """\
The answer changes: rows are added (_diff > 0) and retracted (_diff < 0) at _time
  result    k, SUM(v), _time, _diff
Groups by A.k
  - aggregates: SUM(A.v)
  - having: SUM(A.v) > 100
  Rows of the stream A
    - kept for 10s
    - filter: A.v > 3
Runs in one stage (TPA, operators follow the clocks of their inputs)
  1. reads A; 4 buckets, rows partitioned by A.k"""
    )
    assert (
        explain_plan(db.plan(EXPLAINED[3]))
        == """\
The answer changes: rows are added (_diff > 0) and retracted (_diff < 0) at _time
  result    k, _time, _diff
Changes take effect every 5s
  Columns k
    The first 3 rows after the first 1 by A.v DESC
      Rows of the first that are not in the second
        Rows of the stream A (#1)
          - kept for 1s
        Incremental join of 2 inputs
          - key: B.k = A.k (BIGINT)
          as #1 above
          Rows of the stream B
            - kept for 1s
Runs in 2 stages (TPA, operators follow the clocks of their inputs)
  1. reads A, B; 4 buckets, rows partitioned by A.k; sends changes to stage 2
  2. reads stage 1; all rows in one bucket"""
    )


def test_every_error_has_a_place(db: LocalDatabase) -> None:
    for sql in (
        "SELECT DISTINCT k FROM A",
        "SELECT k FROM A [RANGE 1 S] EXCEPT SELECT s FROM B [RANGE 1 S]",
        "SELECT k FROM A [RANGE 1 S] ORDER BY k",
        "SELECT k, v FROM A [RANGE 1 S] GROUP BY k",
    ):
        with pytest.raises(NilometerError) as caught:
            db.plan(sql)
        assert isinstance(caught.value, SqlError)
        assert caught.value.place is not None
        assert caught.value.hint is not None


def test_stages_are_cut_where_rows_must_meet_others(db: LocalDatabase) -> None:
    join = "A [RANGE 1 S], B [RANGE 2 S] WHERE A.k = B.k"
    for sql, expected in (
        (f"SELECT A.k, COUNT(*) FROM {join} GROUP BY A.k", 1),
        (f"SELECT A.v, COUNT(*) FROM {join} GROUP BY A.v", 2),
        (f"SELECT COUNT(*) FROM {join}", 2),
        (f"SELECT A.v FROM {join} EMIT CHANGES", 2),
        (f"SELECT A.k, B.v FROM {join} EMIT CHANGES", 1),
        ("SELECT k FROM A [RANGE 1 S] EXCEPT SELECT k FROM B [RANGE 1 S]", 1),
        ("SELECT COUNT(*) FROM A [RANGE 1 S] GROUP BY k", 2),
        ("SELECT k FROM A [ROWS 3] UNION SELECT k FROM B [RANGE 1 S]", 1),
        ("SELECT A.k FROM A [ROWS 3], B [RANGE 1 S] WHERE A.k = B.k EMIT CHANGES", 2),
        ("SELECT A.k FROM A [ROWS 3], B [RANGE 1 S] WHERE A.v < B.v EMIT CHANGES", 1),
    ):
        plan = db.plan(sql)
        assert isinstance(plan, ChangesPlan)
        assert len(cut_into_stages(plan).stages) == expected, sql


def test_a_hint_chooses_the_execution(db: LocalDatabase) -> None:
    text = explain_plan(db.plan("SELECT /*+ NTA */ DISTINCT k FROM A [RANGE 1 S]"))
    assert "Runs in one stage (NTA, expired rows are sent again as negative rows)" in text
    union = "SELECT /*+ ita */ k FROM A [RANGE 1 S] UNION SELECT k FROM B [RANGE 1 S]"
    assert "(ITA, operators run when rows reach them)" in explain_plan(db.plan(union))
