"""Statements whose answers change, as nodes: which there are, and what they are told."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase
from nilometer.model.expressions import Argument
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_specs import (
    AggregateCall,
    AggregateFunction,
    SetFunction,
    SortKey,
)
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.sql.plan.changes_plan import (
    Block,
    ChangesPlan,
    Combine,
    LastRows,
    Lifetime,
    UnionPlan,
)
from nilometer.sql.plan.join_plan import JoinPlan
from tests.plan_nodes import (
    SECOND,
    TIMESTAMP,
    as_a,
    lifetimes,
    make_database,
    names,
    root_of,
)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    return make_database()


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT k FROM A", JoinPlan),
        ("SELECT k FROM A EMIT APPEND", JoinPlan),
        ("SELECT k FROM (SELECT k FROM A WHERE v > 1) S", JoinPlan),
        ("SELECT k FROM A UNION ALL SELECT k FROM B", UnionPlan),
        ("(SELECT k FROM A UNION ALL SELECT k FROM B) UNION ALL SELECT k FROM C", UnionPlan),
        ("SELECT k FROM A [RANGE 1 S] EMIT CHANGES", ChangesPlan),
        ("SELECT k FROM A [RANGE 1 S] UNION ALL SELECT k FROM W EMIT CHANGES", ChangesPlan),
        ("SELECT k FROM (SELECT k FROM A [ROWS 1] UNION ALL SELECT k FROM W) S", ChangesPlan),
        ("SELECT k FROM (SELECT DISTINCT k FROM A [RANGE 1 S]) S", ChangesPlan),
        ("WITH q AS (SELECT DISTINCT k FROM A [RANGE 1 S]) SELECT k FROM q", ChangesPlan),
        ("WITH q AS (SELECT DISTINCT k FROM A) SELECT k FROM B", JoinPlan),
        ("SELECT mean(v) FROM A [RANGE 1 S]", ChangesPlan),
    ],
)
def test_the_mode_is_seen_from_the_tree(db: LocalDatabase, sql: str, kind: type) -> None:
    assert type(db.plan(sql)) is kind


def test_a_union_of_appended_queries_has_the_first_names_and_common_types(
    db: LocalDatabase,
) -> None:
    plan = db.plan("SELECT k AS a, v AS b FROM A UNION ALL SELECT v, k FROM B")
    assert isinstance(plan, UnionPlan)
    assert [[item.name for item in one.items] for one in plan.plans] == [["a", "b", "_time"]] * 2
    assert plan.kinds == (pa.float64(), pa.float64(), TIMESTAMP)


def test_groups_get_keys_first_then_arguments(db: LocalDatabase) -> None:
    node = as_a(
        AggregateSpec,
        root_of(
            db,
            "SELECT SUM(v) AS t, k, COUNT(*), AVG(DISTINCT v), MEDIAN(v), PERCENTILE(k, 0.9), "
            "VAR_POP(v) FROM A [RANGE 10 S] WHERE s LIKE 'x%' GROUP BY k HAVING SUM(v) > 100",
        ),
    )
    assert names(node)[:3] == ["t", "k", "COUNT(*)"]
    assert [one.kind for one in node.columns[:3]] == [pa.float64(), pa.int64(), pa.int64()]
    assert node.spec.keys == 1
    function = AggregateFunction
    assert node.spec.calls == (
        AggregateCall(function.SUM, 1),
        AggregateCall(function.COUNT_ROWS),
        AggregateCall(function.AVG, 1, distinct=True),
        AggregateCall(function.PERCENTILE, 1, fraction=0.5),
        AggregateCall(function.PERCENTILE, 2, fraction=0.9),
        AggregateCall(function.VAR_POP, 1),
    )
    assert node.spec.values[:3] == (Argument(1), Argument(0), Argument(2))
    assert node.spec.test is not None
    below = as_a(Block, node.inputs[0])
    assert names(below) == ["A.k", "A.v", "A.k"]
    assert [str(c) for c in below.plan.sources[0].below] == ["A.s LIKE 'x%'"]
    assert below.lifetimes == (Lifetime(("A",), 10 * SECOND),)


def test_keys_are_expressions_aliases_and_positions(db: LocalDatabase) -> None:
    for key in ("k + 1", "j", "1"):
        node = as_a(
            AggregateSpec,
            root_of(db, f"SELECT k + 1 AS j, (k + 1) * 2 FROM A [RANGE 1 S] GROUP BY {key}"),
        )
        assert node.spec.keys == 1
        assert node.spec.calls == ()
        assert node.spec.values[0] == Argument(0)
        assert names(node.inputs[0]) == ["A.k + 1"]


def test_a_column_counts_before_an_alias_in_group_by(db: LocalDatabase) -> None:
    node = as_a(AggregateSpec, root_of(db, "SELECT MAX(k) AS v FROM A [RANGE 1 S] GROUP BY v"))
    assert names(node.inputs[0]) == ["A.v", "A.k"]


def test_one_group_without_group_by_and_nothing_but_rows_to_count(db: LocalDatabase) -> None:
    node = as_a(AggregateSpec, root_of(db, "SELECT COUNT(*) FROM A [RANGE 1 S]"))
    assert (node.spec.keys, node.inputs[0].columns) == (0, ())
    filtered = as_a(
        AggregateSpec, root_of(db, "SELECT COUNT(*) FILTER (WHERE v > 1) FROM A [RANGE 1 S]")
    )
    assert filtered.spec.calls == (AggregateCall(AggregateFunction.COUNT, 0),)
    assert names(filtered.inputs[0]) == ["CASE WHEN A.v > 1 THEN 1 END"]


@pytest.mark.parametrize(
    ("operator", "function"),
    [
        ("UNION", SetFunction.UNION),
        ("INTERSECT", SetFunction.INTERSECT),
        ("INTERSECT ALL", SetFunction.INTERSECT_ALL),
        ("EXCEPT", SetFunction.EXCEPT),
        ("MINUS", SetFunction.EXCEPT),
        ("MINUS ALL", SetFunction.EXCEPT_ALL),
    ],
)
def test_set_operators_have_one_type_and_the_first_names(
    db: LocalDatabase, operator: str, function: SetFunction
) -> None:
    node = as_a(
        SetCountsSpec, root_of(db, f"SELECT k AS a FROM W {operator} SELECT v FROM B [RANGE 2 S]")
    )
    assert node.spec.function is function
    for one in (node, *node.inputs):
        assert [(c.name, c.kind) for c in one.columns] == [("a", pa.float64())]
    assert as_a(Block, node.inputs[0]).lifetimes == ()


def test_intersect_binds_before_union_and_union_all_is_flat(db: LocalDatabase) -> None:
    node = as_a(
        SetCountsSpec,
        root_of(
            db,
            "SELECT k FROM A [RANGE 1 S] UNION SELECT k FROM B [RANGE 1 S] "
            "INTERSECT SELECT k FROM C [RANGE 1 S]",
        ),
    )
    assert as_a(SetCountsSpec, node.inputs[1]).spec.function is SetFunction.INTERSECT
    flat = root_of(
        db,
        "SELECT k FROM A [ROWS 1] UNION ALL SELECT k FROM B [ROWS 1] UNION ALL SELECT k FROM W "
        "EMIT CHANGES",
    )
    assert len(as_a(UnionAllSpec, flat).inputs) == 3


def test_types_of_other_nodes_are_cast_above_them(db: LocalDatabase) -> None:
    node = as_a(
        SetCountsSpec,
        root_of(db, "SELECT DISTINCT k FROM A [RANGE 1 S] UNION SELECT v FROM B [RANGE 1 S]"),
    )
    cast = as_a(ComputeSpec, node.inputs[0])
    assert (cast.spec.values, cast.columns[0].kind) == ((Argument(0),), pa.float64())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k FROM A [RANGE 5 S] EMIT CHANGES", {"A": 5}),
        ("SELECT k FROM A WINDOW = 5 S EMIT CHANGES", {"A": 5}),
        ("SELECT A.k FROM A, B WINDOW = 5 S EMIT CHANGES", {"A": 5, "B": 5}),
        ("SELECT A.k FROM A, B DWINDOW(A, B) = 5 S EMIT CHANGES", {"A": 5, "B": 5}),
        (
            "SELECT A.k FROM A, B, C WINDOW(A, B) = 5 S AND DWINDOW(B, C) = 10 S EMIT CHANGES",
            {"A": 15, "B": 10, "C": 15},
        ),
        ("SELECT A.k FROM A [RANGE 3 S], B WINDOW(A, B) = 5 S EMIT CHANGES", {"A": 3, "B": 5}),
        (
            "SELECT A.k FROM A, B WHERE B.ts BETWEEN A.ts AND A.ts + INTERVAL '4' SECOND "
            "EMIT CHANGES",
            {"A": 4, "B": 4},
        ),
        ("SELECT A.k FROM A [ROWS 2], B WINDOW(A, B) = 5 S EMIT CHANGES", {"B": 5}),
        ("SELECT S.k FROM (SELECT k FROM A) S [RANGE 7 S] EMIT CHANGES", {"S": 7}),
        ("SELECT S.k FROM (SELECT k FROM A) S, B WINDOW = 5 S EMIT CHANGES", {"S": 5, "B": 5}),
        (
            "SELECT S.k FROM (SELECT A.k FROM A, B WINDOW = 5 S) S [RANGE 9 S] EMIT CHANGES",
            {"S.A S.B": 9},
        ),
        (
            "SELECT S.k FROM (SELECT A.k FROM A, B WINDOW = 5 S) S, C WINDOW(S, C) = 2 S "
            "EMIT CHANGES",
            {"S.A": 5, "S.B": 5, "C": 2},
        ),
        ("SELECT A.k FROM A LEFT JOIN B ON A.k = B.k WINDOW(A, B) = 3 S", {"A": 3, "B": 3}),
    ],
)
def test_lifetimes(db: LocalDatabase, sql: str, expected: dict[str, int]) -> None:
    assert lifetimes(db, sql) == expected


def test_streams_under_time_windows_are_one_block_whose_network_is_closed(
    db: LocalDatabase,
) -> None:
    node = as_a(
        Block,
        root_of(
            db,
            "SELECT A.k, B.v + C.v AS w, W.why FROM A [RANGE 1 S], B [RANGE 2 S], C [RANGE 3 S], W "
            "WHERE A.k = B.k AND B.k = C.k AND A.k = W.k AND A.v > 1 AND A.v < B.v EMIT CHANGES",
        ),
    )
    assert node.plan.network.closed[0][1] == 1 * SECOND
    assert node.plan.network.closed[2][0] == 3 * SECOND
    assert node.plan.after == ()
    assert [str(one) for one in node.plan.residuals] == ["A.v < B.v"]
    assert [item.name for item in node.plan.items] == ["k", "w", "why"]


def test_rows_windows_and_what_they_join_are_combined(db: LocalDatabase) -> None:
    node = as_a(
        Combine,
        root_of(
            db,
            "SELECT A.k, B.v FROM A [ROWS 3], B [RANGE 5 S], W "
            "WHERE A.k = B.k AND W.k = B.k AND A.v > 2 AND A.s < B.s EMIT CHANGES",
        ),
    )
    last, block, table = node.inputs
    assert as_a(LastRows, last).plan.sources[0].rows is not None
    assert [str(c) for c in as_a(LastRows, last).plan.sources[0].above] == ["A.v > 2"]
    assert as_a(Block, block).lifetimes == (Lifetime(("B",), 5 * SECOND),)
    assert as_a(Block, table).lifetimes == ()
    for source, one in zip(node.plan.sources, node.inputs, strict=True):
        assert [c.kind for c in one.columns] == [c.kind for c in source.carried]
        assert [c.name for c in one.columns] == [str(c.ref) for c in source.carried]
        assert (source.is_held, source.below, source.above, source.rows) == (True, (), (), None)
    assert [[str(c.ref) for c in s.carried] for s in node.plan.sources] == [
        ["A.k", "A.s"],
        ["B.k", "B.v", "B.s"],
        ["W.k"],
    ]
    assert node.plan.sources[2].carried[0].kind == pa.int64()
    assert [str(one) for one in node.plan.residuals] == ["A.s < B.s"]


def test_windows_between_combined_streams_are_asked_of_their_times(db: LocalDatabase) -> None:
    node = as_a(
        Combine,
        root_of(db, "SELECT A.k FROM A [ROWS 3], B WINDOW(A, B) BETWEEN -1 S AND 5 S EMIT CHANGES"),
    )
    assert [str(one) for one in node.plan.residuals] == [
        "(B.ts - A.ts) <= INTERVAL '5000000' MICROSECOND",
        "(A.ts - B.ts) <= INTERVAL '1000000' MICROSECOND",
    ]


def test_a_query_in_from_is_a_relation(db: LocalDatabase) -> None:
    below = "(SELECT k, COUNT(*) AS n FROM A [RANGE 10 S] GROUP BY k) S"
    alone = as_a(ComputeSpec, root_of(db, f"SELECT n + 1 AS m FROM {below} WHERE n > 1"))
    assert alone.spec.test is not None
    assert names(as_a(AggregateSpec, alone.inputs[0])) == ["k", "n"]
    same = root_of(db, f"SELECT k AS a, n AS b FROM {below}")
    assert names(as_a(AggregateSpec, same)) == ["a", "b"]
    joined = as_a(
        Combine, root_of(db, f"SELECT S.n FROM {below}, B [RANGE 1 S] WHERE S.k = B.k AND n > 1")
    )
    assert as_a(ComputeSpec, joined.inputs[0]).spec.test is not None
    assert isinstance(joined.inputs[1], Block)


def test_a_query_of_with_is_one_node(db: LocalDatabase) -> None:
    node = as_a(
        Combine,
        root_of(
            db,
            "WITH q AS (SELECT k, COUNT(*) AS n FROM A [RANGE 1 S] GROUP BY k) "
            "SELECT X.k FROM q X, q Y WHERE X.n = Y.n AND X.k < Y.k",
        ),
    )
    assert node.inputs[0] is node.inputs[1]


def test_a_windowed_unit_that_is_joined_is_a_block_with_its_time(db: LocalDatabase) -> None:
    node = as_a(
        Combine,
        root_of(
            db,
            "SELECT P.k FROM (SELECT A.k FROM A, B WINDOW = 5 S WHERE A.k = B.k) P [RANGE 10 S], "
            "C WINDOW(P, C) = 2 S WHERE P.k = C.k EMIT CHANGES",
        ),
    )
    unit = as_a(Block, node.inputs[0])
    assert names(unit) == ["k", "time of the result"]
    assert unit.lifetimes == (Lifetime(("P.A", "P.B"), 10 * SECOND),)
    assert len(node.plan.residuals) == 2


def test_a_column_named_time_is_no_time_of_a_query_whose_answer_changes(
    db: LocalDatabase,
) -> None:
    sql = "SELECT S._time AS t, B.k FROM (SELECT DISTINCT ts AS _time FROM A [RANGE 1 S]) S, B "
    node = as_a(Combine, root_of(db, f"{sql} [RANGE 1 S]"))
    assert names(node) == ["t", "k"]
    with pytest.raises(SqlError, match="B has no window"):
        db.plan(sql)


def test_columns_of_one_name_are_kept_apart(db: LocalDatabase) -> None:
    sql = "(SELECT A.k, B.k FROM A, B WINDOW = 1 S) ORDER BY 2 LIMIT 1"
    node = as_a(TopRowsSpec, root_of(db, sql))
    assert (names(node), node.spec.order) == (["k", "k"], (SortKey(1),))
