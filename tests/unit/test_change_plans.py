"""Statements whose answers change, as nodes: which there are, and what they are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError, SqlError
from nilometer.local.database import LocalDatabase
from nilometer.model.expressions import Argument, Constant, Negative
from nilometer.operators.change_specs import (
    AggregateCall,
    AggregateFunction,
    SetFunction,
    SortKey,
)
from nilometer.sql.catalog import Catalog
from nilometer.sql.changes_plan import (
    Aggregate,
    Block,
    ChangesPlan,
    Combine,
    Compute,
    Counted,
    LastRows,
    Lifetime,
    Node,
    Paced,
    TopRows,
    UnionAll,
    UnionPlan,
)
from nilometer.sql.compile import compile_statement
from nilometer.sql.explain import explain_plan
from nilometer.sql.plan import JoinPlan
from nilometer.sql.stages import cut_into_stages
from nilometer.sql.statements import ExplainFormat, read_query

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("ts", TIMESTAMP), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
AnyNode = TypeVar("AnyNode", bound=Node)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=4)
    for name in ("A", "B", "C"):
        made.create_stream(name, SCHEMA.empty_table(), time="ts")
    made.create_table("W", pa.schema([("k", pa.int32()), ("why", pa.string())]).empty_table())
    return made


def root_of(db: LocalDatabase, sql: str) -> Node:
    plan = db.plan(sql)
    assert isinstance(plan, ChangesPlan)
    return plan.root


def as_a(kind: type[AnyNode], node: Node) -> AnyNode:
    assert isinstance(node, kind), node
    return node


def names(node: Node) -> list[str]:
    return [one.name for one in node.columns]


def nodes_of(node: Node) -> Iterator[Node]:
    yield node
    for one in node.inputs:
        yield from nodes_of(one)


def lifetimes(db: LocalDatabase, sql: str) -> dict[str, int]:
    """How many seconds the rows of each stream stay, by the streams' names."""
    return {
        " ".join(one.streams): one.length // SECOND
        for node in nodes_of(root_of(db, sql))
        if isinstance(node, Block)
        for one in node.lifetimes
    }


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
        Aggregate,
        root_of(
            db,
            "SELECT SUM(v) AS t, k, COUNT(*), AVG(DISTINCT v), MEDIAN(v), PERCENTILE(k, 0.9), "
            "VAR_POP(v) FROM A [RANGE 10 S] WHERE s LIKE 'x%' GROUP BY k HAVING SUM(v) > 100",
        ),
    )
    assert names(node)[:3] == ["t", "k", "COUNT(*)"]
    assert [one.kind for one in node.columns[:3]] == [pa.float64(), pa.int64(), pa.int64()]
    assert node.keys == 1
    function = AggregateFunction
    assert node.calls == (
        AggregateCall(function.SUM, 1),
        AggregateCall(function.COUNT_ROWS),
        AggregateCall(function.AVG, 1, distinct=True),
        AggregateCall(function.PERCENTILE, 1, fraction=0.5),
        AggregateCall(function.PERCENTILE, 2, fraction=0.9),
        AggregateCall(function.VAR_POP, 1),
    )
    assert node.values[:3] == (Argument(1), Argument(0), Argument(2))
    assert node.test is not None
    below = as_a(Block, node.inputs[0])
    assert names(below) == ["A.k", "A.v", "A.k"]
    assert [str(c) for c in below.plan.sources[0].below] == ["A.s LIKE 'x%'"]
    assert below.lifetimes == (Lifetime(("A",), 10 * SECOND),)


def test_keys_are_expressions_aliases_and_positions(db: LocalDatabase) -> None:
    for key in ("k + 1", "j", "1"):
        node = as_a(
            Aggregate,
            root_of(db, f"SELECT k + 1 AS j, (k + 1) * 2 FROM A [RANGE 1 S] GROUP BY {key}"),
        )
        assert node.keys == 1
        assert node.calls == ()
        assert node.values[0] == Argument(0)
        assert names(node.inputs[0]) == ["A.k + 1"]


def test_a_column_counts_before_an_alias_in_group_by(db: LocalDatabase) -> None:
    node = as_a(Aggregate, root_of(db, "SELECT MAX(k) AS v FROM A [RANGE 1 S] GROUP BY v"))
    assert names(node.inputs[0]) == ["A.v", "A.k"]


def test_one_group_without_group_by_and_nothing_but_rows_to_count(db: LocalDatabase) -> None:
    node = as_a(Aggregate, root_of(db, "SELECT COUNT(*) FROM A [RANGE 1 S]"))
    assert (node.keys, node.inputs[0].columns) == (0, ())
    filtered = as_a(
        Aggregate, root_of(db, "SELECT COUNT(*) FILTER (WHERE v > 1) FROM A [RANGE 1 S]")
    )
    assert filtered.calls == (AggregateCall(AggregateFunction.COUNT, 0),)
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
        Counted, root_of(db, f"SELECT k AS a FROM W {operator} SELECT v FROM B [RANGE 2 S]")
    )
    assert node.function is function
    for one in (node, *node.inputs):
        assert [(c.name, c.kind) for c in one.columns] == [("a", pa.float64())]
    assert as_a(Block, node.inputs[0]).lifetimes == ()


def test_intersect_binds_before_union_and_union_all_is_flat(db: LocalDatabase) -> None:
    node = as_a(
        Counted,
        root_of(
            db,
            "SELECT k FROM A [RANGE 1 S] UNION SELECT k FROM B [RANGE 1 S] "
            "INTERSECT SELECT k FROM C [RANGE 1 S]",
        ),
    )
    assert as_a(Counted, node.inputs[1]).function is SetFunction.INTERSECT
    flat = root_of(
        db,
        "SELECT k FROM A [ROWS 1] UNION ALL SELECT k FROM B [ROWS 1] UNION ALL SELECT k FROM W "
        "EMIT CHANGES",
    )
    assert len(as_a(UnionAll, flat).inputs) == 3


def test_types_of_other_nodes_are_cast_above_them(db: LocalDatabase) -> None:
    node = as_a(
        Counted,
        root_of(db, "SELECT DISTINCT k FROM A [RANGE 1 S] UNION SELECT v FROM B [RANGE 1 S]"),
    )
    cast = as_a(Compute, node.inputs[0])
    assert (cast.values, cast.columns[0].kind) == ((Argument(0),), pa.float64())


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
    alone = as_a(Compute, root_of(db, f"SELECT n + 1 AS m FROM {below} WHERE n > 1"))
    assert alone.test is not None
    assert names(as_a(Aggregate, alone.inputs[0])) == ["k", "n"]
    same = root_of(db, f"SELECT k AS a, n AS b FROM {below}")
    assert names(as_a(Aggregate, same)) == ["a", "b"]
    joined = as_a(
        Combine, root_of(db, f"SELECT S.n FROM {below}, B [RANGE 1 S] WHERE S.k = B.k AND n > 1")
    )
    assert as_a(Compute, joined.inputs[0]).test is not None
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
    node = as_a(TopRows, root_of(db, sql))
    assert (names(node), node.order) == (["k", "k"], (SortKey(1),))


def test_a_left_join_keeps_rows_without_partners(db: LocalDatabase) -> None:
    top = as_a(
        Compute,
        root_of(
            db,
            "SELECT A.k, B.v FROM A [RANGE 10 S] LEFT JOIN B [RANGE 5 S] ON A.k = B.k "
            "WHERE A.s = 'x'",
        ),
    )
    assert top.test is not None
    both = as_a(UnionAll, top.inputs[0])
    joined, padded = as_a(Block, both.inputs[0]), as_a(Compute, both.inputs[1])
    assert names(joined) == ["A.k", "A.s", "B.k", "B.v"]
    nothing = Constant(None)
    assert padded.values == (Argument(0), Argument(1), nothing, nothing)
    alone = as_a(Counted, padded.inputs[0])
    assert alone.function is SetFunction.WITHOUT
    assert names(as_a(Block, alone.inputs[0])) == ["A.k", "A.s"]
    assert as_a(Compute, alone.inputs[1]).inputs[0] is joined


def test_windows_of_an_outer_join_make_times_part_of_rows(db: LocalDatabase) -> None:
    top = root_of(db, "SELECT A.k, B.k FROM A LEFT JOIN B ON A.k = B.k WINDOW(A, B) = 3 S")
    assert names(top.inputs[0]) == ["A.k", "A._time", "B.k", "B._time"]


def test_a_full_join_keeps_both_sides_and_merges_using(db: LocalDatabase) -> None:
    top = as_a(
        Compute,
        root_of(
            db,
            "SELECT * FROM (SELECT k, v FROM A [ROWS 2]) A "
            "FULL JOIN (SELECT k, s FROM B [RANGE 1 S]) B USING (k)",
        ),
    )
    assert names(top) == ["k", "v", "s"]
    assert top.texts[0] == "(CASE WHEN A.k IS NULL THEN B.k ELSE A.k END)"
    joined, left, right = as_a(UnionAll, top.inputs[0]).inputs
    alone = [as_a(Counted, as_a(Compute, side).inputs[0]) for side in (left, right)]
    assert [one.function for one in alone] == [SetFunction.WITHOUT] * 2
    assert [one.inputs[0] for one in alone] == list(as_a(Combine, joined).inputs)


def test_exists_counts_rows_with_partners(db: LocalDatabase) -> None:
    for negated, function in (("NOT ", SetFunction.WITHOUT), ("", SetFunction.WITH)):
        top = as_a(
            Compute,
            root_of(
                db,
                f"SELECT s FROM A [RANGE 5 S] WHERE v > 1 AND {negated}EXISTS "
                "(SELECT * FROM B [RANGE 1 S] WHERE B.k = A.k)",
            ),
        )
        counted = as_a(Counted, top.inputs[0])
        assert counted.function is function
        held, partners = counted.inputs
        assert names(as_a(Block, held)) == ["A.k", "A.v", "A.s"]
        assert as_a(Combine, partners).inputs[0] is held
        assert names(partners) == names(held)


def test_in_a_query_is_exists(db: LocalDatabase) -> None:
    node = as_a(
        Counted,
        root_of(
            db,
            "SELECT k FROM A [RANGE 5 S] WHERE k IN "
            "(SELECT k FROM B [RANGE 1 S] GROUP BY k HAVING COUNT(*) > 1)",
        ),
    )
    assert node.function is SetFunction.WITH
    assert isinstance(as_a(Combine, node.inputs[1]).inputs[1], Aggregate)


def test_first_rows_and_hidden_columns(db: LocalDatabase) -> None:
    dropped = as_a(
        Compute,
        root_of(
            db,
            "SELECT k FROM A [RANGE 5 S] ORDER BY v DESC, k, s NULLS LAST LIMIT 5 OFFSET 2",
        ),
    )
    assert (dropped.values, names(dropped)) == ((Argument(0),), ["k"])
    top = as_a(TopRows, dropped.inputs[0])
    assert (top.limit, top.offset) == (5, 2)
    assert top.order == (
        SortKey(1, descending=True, nulls_first=False),
        SortKey(0),
        SortKey(2, nulls_first=False),
    )


def test_groups_are_ordered_by_what_they_show_or_hide(db: LocalDatabase) -> None:
    sql = "SELECT k, COUNT(*) AS n FROM A [RANGE 5 S] GROUP BY k ORDER BY {} LIMIT 5"
    for by in ("n", "2", "COUNT(*)"):
        top = as_a(TopRows, root_of(db, sql.format(by)))
        assert top.order == (SortKey(1),)
    hidden = as_a(Compute, root_of(db, sql.format("MAX(v) + 1")))
    assert as_a(Aggregate, hidden.inputs[0].inputs[0]).keys == 1
    union = root_of(
        db, "(SELECT k FROM A [RANGE 1 S] UNION SELECT k FROM W) ORDER BY k + 1 LIMIT 1"
    )
    assert isinstance(as_a(Compute, union).inputs[0], TopRows)


def test_a_pace_stands_at_the_root(db: LocalDatabase) -> None:
    node = as_a(Paced, root_of(db, "SELECT DISTINCT k FROM A [RANGE 1 S] EMIT CHANGES EVERY 5 S"))
    assert node.every == 5 * SECOND
    assert as_a(Counted, node.inputs[0]).function is SetFunction.DISTINCT


def test_what_only_spark_computes_becomes_a_key_of_its_own() -> None:
    class Engine:
        def types_of(self, relation: str, expressions: list[str]) -> list[pa.DataType]:
            return [pa.string() for _ in expressions]

    made = LocalDatabase()
    made.create_stream("A", SCHEMA.empty_table(), time="ts")
    catalog = Catalog(made._relations, {}, Engine())  # type: ignore[arg-type]
    sql = "SELECT upper(s) AS u, COUNT(*) FROM A [RANGE 1 S] GROUP BY s"
    plan = compile_statement(read_query(sql), catalog, 1)
    assert isinstance(plan, ChangesPlan)
    node = as_a(Aggregate, plan.root)
    assert node.keys == 2
    assert names(node.inputs[0]) == ["A.s", "UPPER(A.s)"]
    assert [str(c.ref) for c in as_a(Block, node.inputs[0]).plan.output] == ["A.s", "UPPER(A.s)"]


def test_emit_is_read_behind_a_union_and_in_brackets(db: LocalDatabase) -> None:
    for sql in (
        "SELECT k FROM A [ROWS 1] UNION ALL SELECT k FROM W EMIT CHANGES EVERY 1 S",
        "(SELECT k FROM A [ROWS 1] EMIT CHANGES EVERY 1 S)",
    ):
        assert as_a(Paced, root_of(db, sql)).every == SECOND
    with pytest.raises(SqlError, match="EMIT belongs to the outermost query"):
        db.plan("SELECT k FROM (SELECT k FROM A [ROWS 1] EMIT CHANGES) S")


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


def test_the_tree_of_operators_is_told(db: LocalDatabase) -> None:
    assert (
        explain_plan(db.plan(EXPLAINED[0]))
        == """\
The answer changes: rows come (_diff > 0) and go (_diff < 0) at _time
  result    k, SUM(v), _time, _diff
Groups by A.k
  - aggregates: SUM(A.v)
  - having: SUM(A.v) > 100
  Rows of the stream A
    - kept for 10s
    - selected: A.v > 3
Runs in one stage (TPA, operators go by their inputs' clocks)
  1. reads A; 4 buckets, rows together by A.k"""
    )
    assert (
        explain_plan(db.plan(EXPLAINED[3]))
        == """\
The answer changes: rows come (_diff > 0) and go (_diff < 0) at _time
  result    k, _time, _diff
Changes take effect every 5s
  Columns k
    The first 3 rows after the first 1 by A.v DESC
      Rows of the first that the second has not
        Rows of the stream A (#1)
          - kept for 1s
        Join of 2 inputs, as they change
          - key: B.k = A.k (BIGINT)
          as #1 above
          Rows of the stream B
            - kept for 1s
Runs in 2 stages (TPA, operators go by their inputs' clocks)
  1. reads A, B; 4 buckets, rows together by A.k; sends changes to stage 2
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
    told = explain_plan(db.plan("SELECT /*+ NTA */ DISTINCT k FROM A [RANGE 1 S]"))
    assert "Runs in one stage (NTA, rows that expire travel again as negative ones)" in told
    union = "SELECT /*+ ita */ k FROM A [RANGE 1 S] UNION SELECT k FROM B [RANGE 1 S]"
    assert "(ITA, operators run when rows reach them)" in explain_plan(db.plan(union))


class EngineOfTables:
    """An engine that knows streams and tables only, as Spark does."""

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
        "SELECT UPPER(MAX(s)) FROM A [RANGE 1 S]",
        "SELECT k FROM A [RANGE 1 S] GROUP BY k HAVING UPPER(MAX(s)) > 'A'",
        "SELECT k FROM A [RANGE 1 S] GROUP BY k ORDER BY UPPER(MAX(s)) LIMIT 1",
        "SELECT UPPER(s) FROM (SELECT DISTINCT s FROM A [RANGE 1 S]) S",
        "SELECT 1 FROM (SELECT DISTINCT s FROM A [RANGE 1 S]) S WHERE UPPER(s) = 'A'",
        "SELECT 1 FROM A [RANGE 1 S] a LEFT JOIN B [RANGE 1 S] b ON a.k = b.k "
        "WHERE UPPER(b.s) = a.s",
        "SELECT 1 FROM A [RANGE 1 S] a, (SELECT DISTINCT s FROM B [RANGE 1 S]) b "
        "WHERE a.s = UPPER(b.s)",
        "SELECT 1 FROM A [RANGE 1 S] a WHERE EXISTS "
        "(SELECT 1 FROM B [RANGE 1 S] b WHERE b.s = UPPER(a.s))",
    ],
)
def test_the_engine_is_not_asked_of_rows_that_it_does_not_see(db: LocalDatabase, sql: str) -> None:
    for compiled in (lambda: planned_with_engine(db, sql), lambda: db.plan(sql)):
        with pytest.raises(SqlError) as caught:
            compiled()
        assert caught.value.message == "the function upper is not available here"
        assert caught.value.place is not None
        place = caught.value.place
        assert sql[place.start : place.start + 6] == "UPPER("


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
        ("SELECT COUNT(*) FROM W WINDOW = 3 S", "there is no stream for this window"),
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
    below = as_a(TopRows, top.inputs[0])
    assert [key.column for key in below.order] == [2, 0]
    assert as_a(Aggregate, below.inputs[0]).values[2] == Negative(Argument(1))
    plain = as_a(
        TopRows, root_of(db, "SELECT k + 1 AS v FROM A [RANGE 1 S] ORDER BY -v LIMIT 1").inputs[0]
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
