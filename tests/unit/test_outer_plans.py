"""Outer joins, EXISTS, first rows and paces as nodes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase
from nilometer.model.expressions import Argument, Constant
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_specs import (
    SetFunction,
    SortKey,
)
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.paced import PacedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.plan.changes_plan import (
    Block,
    ChangesPlan,
    Combine,
    runs,
)
from nilometer.sql.statements import read_query
from tests.plan_nodes import (
    SCHEMA,
    SECOND,
    as_a,
    make_database,
    names,
    root_of,
)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    return make_database()


def test_a_left_join_keeps_rows_without_partners(db: LocalDatabase) -> None:
    top = as_a(
        ComputeSpec,
        root_of(
            db,
            "SELECT A.k, B.v FROM A [RANGE 10 S] LEFT JOIN B [RANGE 5 S] ON A.k = B.k "
            "WHERE A.s = 'x' AND B.v IS NULL",
        ),
    )
    assert top.texts[0] == "B.v IS NULL"
    both = as_a(UnionAllSpec, top.inputs[0])
    joined, padded = as_a(Block, both.inputs[0]), as_a(ComputeSpec, both.inputs[1])
    assert names(joined) == ["A.k", "A.s", "B.k", "B.v"]
    nothing = Constant(None)
    assert padded.spec.values == (Argument(0), Argument(1), nothing, nothing)
    alone = as_a(SetCountsSpec, padded.inputs[0])
    assert alone.spec.function is SetFunction.WITHOUT
    left = as_a(Block, alone.inputs[0])
    assert names(left) == ["A.k", "A.s"]
    for block in (joined, left):  # rows of the left side are chosen before the join
        assert [str(one) for one in block.plan.sources[0].below] == ["A.s = 'x'"]
    assert as_a(ComputeSpec, alone.inputs[1]).inputs[0] is joined


def test_windows_of_an_outer_join_make_times_part_of_rows(db: LocalDatabase) -> None:
    top = root_of(db, "SELECT A.k, B.k FROM A LEFT JOIN B ON A.k = B.k WINDOW(A, B) = 3 S")
    assert names(top.inputs[0]) == ["A.k", "A._time", "B.k", "B._time"]


def test_a_full_join_keeps_both_sides_and_merges_using(db: LocalDatabase) -> None:
    top = as_a(
        ComputeSpec,
        root_of(
            db,
            "SELECT * FROM (SELECT k, v FROM A [ROWS 2]) A "
            "FULL JOIN (SELECT k, s FROM B [RANGE 1 S]) B USING (k)",
        ),
    )
    assert names(top) == ["k", "v", "s"]
    assert top.texts[0] == "(CASE WHEN A.k IS NULL THEN B.k ELSE A.k END)"
    joined, left, right = as_a(UnionAllSpec, top.inputs[0]).inputs
    alone = [as_a(SetCountsSpec, as_a(ComputeSpec, side).inputs[0]) for side in (left, right)]
    assert [one.spec.function for one in alone] == [SetFunction.WITHOUT] * 2
    assert [one.inputs[0] for one in alone] == list(as_a(Combine, joined).inputs)


def test_exists_counts_rows_with_partners(db: LocalDatabase) -> None:
    for negated, function in (("NOT ", SetFunction.WITHOUT), ("", SetFunction.WITH)):
        top = as_a(
            ComputeSpec,
            root_of(
                db,
                f"SELECT s FROM A [RANGE 5 S] WHERE v > 1 AND {negated}EXISTS "
                "(SELECT * FROM B [RANGE 1 S] WHERE B.k = A.k)",
            ),
        )
        counted = as_a(SetCountsSpec, top.inputs[0])
        assert counted.spec.function is function
        held, partners = counted.inputs
        assert names(as_a(Block, held)) == ["A.k", "A.v", "A.s"]
        assert as_a(Combine, partners).inputs[0] is held
        assert names(partners) == names(held)


def test_in_a_query_is_exists(db: LocalDatabase) -> None:
    node = as_a(
        SetCountsSpec,
        root_of(
            db,
            "SELECT k FROM A [RANGE 5 S] WHERE k IN "
            "(SELECT k FROM B [RANGE 1 S] GROUP BY k HAVING COUNT(*) > 1)",
        ),
    )
    assert node.spec.function is SetFunction.WITH
    assert runs(as_a(Combine, node.inputs[1]).inputs[1], AggregateSpec)


def test_first_rows_and_hidden_columns(db: LocalDatabase) -> None:
    dropped = as_a(
        ComputeSpec,
        root_of(
            db,
            "SELECT k FROM A [RANGE 5 S] ORDER BY v DESC, k, s NULLS LAST LIMIT 5 OFFSET 2",
        ),
    )
    assert (dropped.spec.values, names(dropped)) == ((Argument(0),), ["k"])
    top = as_a(TopRowsSpec, dropped.inputs[0])
    assert (top.spec.limit, top.spec.offset) == (5, 2)
    assert top.spec.order == (
        SortKey(1, descending=True, nulls_first=False),
        SortKey(0),
        SortKey(2, nulls_first=False),
    )


def test_groups_are_ordered_by_what_they_show_or_hide(db: LocalDatabase) -> None:
    sql = "SELECT k, COUNT(*) AS n FROM A [RANGE 5 S] GROUP BY k ORDER BY {} LIMIT 5"
    for by in ("n", "2", "COUNT(*)"):
        top = as_a(TopRowsSpec, root_of(db, sql.format(by)))
        assert top.spec.order == (SortKey(1),)
    hidden = as_a(ComputeSpec, root_of(db, sql.format("MAX(v) + 1")))
    assert as_a(AggregateSpec, hidden.inputs[0].inputs[0]).spec.keys == 1
    union = root_of(
        db, "(SELECT k FROM A [RANGE 1 S] UNION SELECT k FROM W) ORDER BY k + 1 LIMIT 1"
    )
    assert runs(as_a(ComputeSpec, union).inputs[0], TopRowsSpec)


def test_a_pace_stands_at_the_root(db: LocalDatabase) -> None:
    node = as_a(
        PacedSpec, root_of(db, "SELECT DISTINCT k FROM A [RANGE 1 S] EMIT CHANGES EVERY 5 S")
    )
    assert node.spec.every == 5 * SECOND
    assert as_a(SetCountsSpec, node.inputs[0]).spec.function is SetFunction.DISTINCT


def test_what_only_spark_computes_becomes_a_key_of_its_own() -> None:
    class Engine:
        time_zone = "UTC"

        def types_of(self, relation: str, expressions: list[str]) -> list[pa.DataType]:
            return [pa.string() for _ in expressions]

    made = LocalDatabase()
    made.create_stream("A", SCHEMA.empty_table(), time="ts")
    catalog = Catalog(made._relations, {}, Engine())  # type: ignore[arg-type]
    sql = "SELECT soundex(s) AS u, COUNT(*) FROM A [RANGE 1 S] GROUP BY s"
    plan = compile_statement(read_query(sql), catalog, 1)
    assert isinstance(plan, ChangesPlan)
    node = as_a(AggregateSpec, plan.root)
    assert node.spec.keys == 2
    assert names(node.inputs[0]) == ["A.s", "SOUNDEX(A.s)"]
    assert [str(c.ref) for c in as_a(Block, node.inputs[0]).plan.output] == ["A.s", "SOUNDEX(A.s)"]


def test_emit_is_read_behind_a_union_and_in_brackets(db: LocalDatabase) -> None:
    for sql in (
        "SELECT k FROM A [ROWS 1] UNION ALL SELECT k FROM W EMIT CHANGES EVERY 1 S",
        "(SELECT k FROM A [ROWS 1] EMIT CHANGES EVERY 1 S)",
    ):
        assert as_a(PacedSpec, root_of(db, sql)).spec.every == SECOND
    with pytest.raises(SqlError, match="EMIT is only allowed in the outermost query"):
        db.plan("SELECT k FROM (SELECT k FROM A [ROWS 1] EMIT CHANGES) S")


ROWS = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from([None, 1, 2]), st.sampled_from(["x", "y", None])),
    max_size=8,
)


@given(ROWS, ROWS, st.sampled_from(["k = 1", "s = 'x'", "s IS NULL", "k = 1 OR s = 'y'"]))
def test_the_left_side_is_chosen_before_a_left_join_as_after_it(
    left: list[tuple[int, int | None, str | None]],
    right: list[tuple[int, int | None, str | None]],
    condition: str,
) -> None:
    db = LocalDatabase()
    kinds = {"ts": pa.timestamp("us", tz="UTC"), "k": pa.int32(), "s": pa.string()}
    for name, rows in (("A", left), ("B", right)):
        ordered = sorted(rows, key=lambda row: row[0])
        columns = {
            n: pa.array([r[i] for r in ordered], t) for i, (n, t) in enumerate(kinds.items())
        }
        db.create_stream(name, pa.table(columns), "ts")
    listed = "A.k, A.s, B.s AS other FROM A [RANGE 3 us] LEFT JOIN B [RANGE 2 us] ON A.k = B.k"
    written = condition.replace("k", "A.k").replace("s =", "A.s =").replace("s IS", "A.s IS")
    before = db.sql(f"SELECT {listed} WHERE {written}")
    after = db.sql(f"SELECT k, s, other FROM (SELECT {listed}) q WHERE {condition}")
    assert sorted(map(str, before.to_pylist())) == sorted(map(str, after.to_pylist()))
