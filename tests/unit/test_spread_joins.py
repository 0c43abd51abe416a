"""Joins whose keys are spread over several buckets: the same results, each once."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.kernels.chunk import Kernel
from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.local.run_query import LocalQuery
from nilometer.operators import stream_buffer
from nilometer.operators.stage import Execution
from nilometer.sql.catalog import Statistics
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, joins_of
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.parting import Parting
from nilometer.sql.rules.spread_joins import choose_stream, divisors, spread_joins
from tests import naive
from tests.cases import splits as join_splits
from tests.change_data import ChangeData, change_data, splits
from tests.change_oracle import changes_of, check_net, settled
from tests.change_queries import ChangeCase, change_cases
from tests.generated import check_generated
from tests.graph_cases import graph_cases
from tests.unit.test_generated_changes import check_same, database, streamed
from tests.unit.test_join_graphs import run

CASES = int(os.environ.get("NILOMETER_CHANGE_CASES", "1500"))
PARTS = 3
PAIRS = "SELECT A.k, A.v, B.v AS w FROM A, B WINDOW(A, B) = 3 SECONDS WHERE A.k = B.k"
COUNTS = "SELECT A.k, COUNT(*) AS n FROM A, B WINDOW(A, B) = 3 SECONDS WHERE A.k = B.k GROUP BY A.k"


@settings(max_examples=CASES // 5)
@given(st.data())
def test_every_result_of_a_join_comes_once(data: st.DataObject) -> None:
    """On any graph of keys, with static tables, whichever stream is dealt out."""
    case = data.draw(graph_cases(counted=False))
    assume(case.keys[0])
    buckets = data.draw(st.sampled_from((2, 4, 6)))
    parts = data.draw(st.sampled_from(divisors(buckets)[1:]))
    stream = data.draw(st.integers(0, len(case.keys) - 1))
    kernel = data.draw(st.sampled_from((Kernel.HASH, Kernel.HASH, Kernel.MERGE, Kernel.NESTED)))
    cuts = data.draw(join_splits(case, max_batches=8))
    restart = data.draw(st.none() | st.integers(0, len(cuts) - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_buffer, "FANOUT", data.draw(st.sampled_from((2, 3, 16))))
        results, until = run(case, case.stage(kernel, buckets, (parts, stream)), cuts, restart)
    assert results == naive.graph_join(case, until)


def check(draw: st.DataObject) -> None:
    rows, case = draw.draw(change_data()), draw.draw(change_cases())
    buckets = draw.draw(st.sampled_from((2, 4, 6)))
    plan = changing_plan(rows, case, buckets)
    parting = Parting(stream_of(plan, draw), draw.draw(st.sampled_from(divisors(buckets))))
    query = LocalChanges(spread_joins(plan, parting), Execution.TPA)
    whole = changes_of(LocalChanges(plan, Execution.TPA).run_all(database(rows).tables))
    emitted = changes_of(query.run_all(database(rows).tables))
    check_net(emitted)
    check_same(emitted, whole, Execution.TPA, case)
    batches = draw.draw(splits(rows, most=3))
    execution = draw.draw(st.sampled_from(Execution))
    query = LocalChanges(spread_joins(plan, parting), execution, {"T": rows.static()})
    emitted = changes_of(streamed(query, rows, batches, len(batches) - 1))
    check_net(emitted)
    check_same(emitted, settled(whole, case, rows), execution, case)


def changing_plan(rows: ChangeData, case: ChangeCase, buckets: int = 1) -> ChangesPlan:
    """The plan of a case whose answer changes: some are only appended to."""
    plan = database(rows, buckets).plan(case.sql)
    assume(isinstance(plan, ChangesPlan))
    assert isinstance(plan, ChangesPlan)
    return plan


def stream_of(plan: Plan, draw: st.DataObject) -> str:
    """One of the streams that can be dealt out."""
    try:
        stream = choose_stream(plan, None)
    except InputError:
        assume(False)
        raise
    names = {one.name for one in first_join(plan).sources}
    for wanted in draw.draw(st.permutations(sorted(names))):
        try:
            return choose_stream(plan, wanted)
        except InputError:
            continue
    return stream


def first_join(plan: Plan) -> JoinPlan:
    return next(one for one in joins_of(plan) if one.keys and len(one.sources) > 1)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_change_of_an_answer_comes_once(part: int) -> None:
    check_generated(check, part, CASES // 3 // PARTS)


def hot(buckets: int = 4) -> LocalDatabase:
    """Two streams most rows of which have the key 7."""
    db = LocalDatabase(buckets)
    for number, name in enumerate("AB"):
        rows = range(number, 2000)
        table = pa.table(
            {
                "k": pa.array([7 if n % 10 else n % 97 for n in rows], pa.int64()),
                "v": pa.array([n * 31 % 1009 for n in rows], pa.int64()),
                "ts": pa.array([n * 100_000 for n in rows], pa.timestamp("us", "UTC")),
            }
        )
        db.create_stream(name, table, time="ts")
    db.create_table("T", pa.table({"k": pa.array([7], pa.int64()), "name": ["seven"]}))
    return db


def rows_in(query: LocalQuery) -> list[int]:
    """How many rows reach each bucket, of those that are fed."""
    return [bucket.traffic.look.rows for bucket in query.stage.buckets]


def as_rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_hot_key_is_the_work_of_all_buckets() -> None:
    db = hot()
    plan = db.plan(PAIRS)
    assert isinstance(plan, JoinPlan)
    spread = spread_joins(plan, Parting("A", 4))
    assert isinstance(spread, JoinPlan)
    one, other = (LocalQuery(each, {}) for each in (plan, spread))
    assert as_rows(one.feed(db.tables)) == as_rows(other.feed(db.tables))
    pairs = [[bucket.traffic.rows_out for bucket in each.stage.buckets] for each in (one, other)]
    assert sum(pairs[0]) == sum(pairs[1]) > 50_000
    assert max(pairs[0]) > 0.9 * sum(pairs[0])
    assert max(pairs[1]) < 0.3 * sum(pairs[1])
    assert sum(rows_in(other)) == 2000 + 4 * 1999


def test_a_plan_with_a_grouping_deals_groups_out_once_more() -> None:
    db = hot()
    plan = db.plan(COUNTS)
    assert isinstance(plan, ChangesPlan)
    spread = spread_joins(plan, Parting("B", 2))
    assert isinstance(spread, ChangesPlan)
    one, other = (LocalChanges(each, None).run_all(db.tables) for each in (plan, spread))
    assert as_rows(one) == as_rows(other)
    text = explain_plan(spread)
    assert "4 buckets, rows of B with the same key in 2" in text
    assert "rows partitioned by all columns" in text
    even = spread_joins(plan, Parting("B", 1))
    assert isinstance(even, ChangesPlan)
    assert "Runs in 2 stages" in explain_plan(even)
    assert "4 buckets; sends rows" in explain_plan(even)


def test_explain_tells_how_a_join_is_spread() -> None:
    text = explain_plan(spread_joins(hot(8).plan(PAIRS), Parting("A", 4)))
    assert text.endswith(
        "Runs in one stage of 8 buckets, a grid of 2 x 4: the rows of A with the same key are "
        "spread over 4\n  replicated to several buckets: B 4 times"
    )


def test_the_stream_with_most_rows_is_dealt_out_unless_another_is_named() -> None:
    db = hot()
    assert choose_stream(db.plan(PAIRS), None) == "A"
    db.create_stream(
        "B", pa.Table.from_batches([db.tables["B"]]), time="ts", statistics=Statistics(9)
    )
    assert choose_stream(db.plan(PAIRS), None) == "B"
    assert choose_stream(db.plan(PAIRS), "a") == "A"
    tables = "SELECT A.v, T.name FROM T, A WHERE A.k = T.k"
    assert choose_stream(db.plan(tables), None) == "A"
    union = f"{PAIRS} UNION ALL SELECT B.k, B.v, T.k FROM B, T WHERE B.k = T.k"
    assert choose_stream(db.plan(union), None) == "B"


@pytest.mark.parametrize(
    ("sql", "said", "hint"),
    [
        (
            "SELECT A.k FROM A [RANGE 3 SECONDS], B [ROWS 5] WHERE A.k = B.k",
            "a ROWS window needs all rows of a key in one bucket",
            r"\[RANGE 10 SECONDS\]",
        ),
        (
            "SELECT A.k FROM A [RANGE 3 SECONDS], B [PARTITION BY k ROWS 5] WHERE A.k = B.k",
            "a ROWS window needs all rows of a key in one bucket",
            "time window",
        ),
        (
            "SELECT A.k FROM A [RANGE 3 SECONDS], B [ROWS 5] WHERE A.k = B.k EMIT CHANGES",
            "no join of streams that can be spread",
            "leave out spread",
        ),
        (
            "SELECT A.k, B.v FROM A [RANGE 3 SECONDS] LEFT JOIN B [RANGE 3 SECONDS] ON A.k = B.k",
            "an outer join needs all rows of a key in one bucket",
            "write an inner join",
        ),
        (
            "SELECT A.k FROM A [RANGE 3 SECONDS] "
            "WHERE NOT EXISTS (SELECT 1 FROM B [RANGE 3 SECONDS] WHERE A.k = B.k)",
            "no join of streams that can be spread",
            "leave out spread",
        ),
        (
            "SELECT k, COUNT(*) AS n FROM A [RANGE 3 SECONDS] GROUP BY k",
            "no join of streams that can be spread",
            "sums of a hot key",
        ),
        (
            "SELECT A.k FROM A, B WINDOW(A, B) = 3 SECONDS WHERE A.v < B.v",
            "only a join by a key can be spread",
            "leave out spread",
        ),
        (
            "SELECT A.k FROM A, T WHERE A.k = T.k UNION ALL SELECT B.k FROM B, T WHERE B.k = T.k",
            "no stream in common",
            "a query for each",
        ),
    ],
)
def test_what_cannot_be_spread_says_what_to_do(sql: str, said: str, hint: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        choose_stream(hot().plan(sql), None)
    assert refused.match(hint)


def test_a_name_or_a_number_that_does_not_fit() -> None:
    plan = hot(6).plan(PAIRS)
    with pytest.raises(InputError, match="C does not take part in every keyed join") as refused:
        choose_stream(plan, "C")
    assert refused.match("spread_stream = 'A'")
    with pytest.raises(InputError, match="6 buckets cannot be split into 4 parts") as refused:
        spread_joins(plan, Parting("A", 4))
    assert refused.match("write spread = 1 or 2 or 3 or 6")
    assert spread_joins(plan, Parting("A", 1)) == replace(plan)
