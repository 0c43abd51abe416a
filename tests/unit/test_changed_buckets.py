"""The number of buckets changes between micro-batches: every result comes once."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.kernels.chunk import Kernel
from nilometer.kernels.routing import Routing
from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.local.run_query import LocalQuery
from nilometer.local.run_stage import LocalStage
from nilometer.model.time import FOREVER
from nilometer.operators import stream_buffer
from nilometer.operators.stage import Execution, Stage
from nilometer.sql.physical.join_places import build_stage
from nilometer.sql.plan.changes_plan import ChangesPlan
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.parting import Parting
from nilometer.sql.rules.spread_joins import choose_stream, divisors, spread_joins
from tests import naive
from tests.cases import splits as join_splits
from tests.change_data import SCHEMA, change_data, splits, to_batch
from tests.change_oracle import changes_of, check_net, settled
from tests.change_queries import change_cases
from tests.dealt_out import change_buckets, deal_out
from tests.generated import check_generated
from tests.graph_cases import GraphCase, graph_cases
from tests.unit.test_generated_changes import check_same, database, plan_of
from tests.unit.test_join_graphs import results_of
from tests.unit.test_spread_joins import changing_plan, first_join

CASES = int(os.environ.get("NILOMETER_CHANGE_CASES", "1500"))
PARTS = 3
NUMBERS = (1, 2, 3, 4, 6)
SPLIT = (
    "SELECT k, COUNT(*) AS n, SUM(j) AS t FROM A [RANGE 3 MILLISECONDS] GROUP BY k",
    "SELECT k, MEDIAN(j) AS m, COUNT(DISTINCT j) AS d FROM A [RANGE 3 MILLISECONDS] GROUP BY k",
    "SELECT k, j, COUNT(*) AS n FROM A [RANGE 3 MILLISECONDS] GROUP BY k, j",
    "SELECT DISTINCT k, j FROM A [RANGE 3 MILLISECONDS]",
    "SELECT X.k, COUNT(*) AS n FROM A [RANGE 3 MILLISECONDS] X, A [RANGE 2 MILLISECONDS] Y "
    "WHERE X.k = Y.k GROUP BY X.k",
    "SELECT window_start, k, COUNT(*) AS n "
    "FROM TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL 3 MILLISECONDS) GROUP BY window_start, k",
    "SELECT window_start, k, COUNT(*) AS n "
    "FROM SESSION(TABLE A PARTITION BY k, DESCRIPTOR(ts), INTERVAL 1 MILLISECOND) "
    "GROUP BY window_start, k",
    "SELECT k, j FROM A [PARTITION BY k ROWS 2]",
)
"""These can be dealt out to any number of buckets."""


def check(draw: st.DataObject) -> None:
    rows, case = draw.draw(change_data()), draw.draw(change_cases())
    batches = draw.draw(splits(rows, least=2, most=5))
    db = database(rows)
    whole = changes_of(LocalChanges(plan_of(db, case), Execution.TPA).run_all(db.tables))
    execution = draw.draw(st.sampled_from(Execution))
    number = draw.draw(st.sampled_from(NUMBERS))
    query = LocalChanges(plan_of(database(rows, number), case), execution, {"T": rows.static()})
    tables = []
    for parts in batches:
        number = draw.draw(st.sampled_from(NUMBERS))
        with suppress(InputError):  # it cannot be split, and goes on as it was
            query = change_buckets(query, plan_of(database(rows, number), case), execution)
        tables.append(query.feed({name: rows.batch(name, *part) for name, part in parts.items()}))
    emitted = changes_of(pa.concat_tables(tables))
    check_net(emitted)
    check_same(emitted, settled(whole, case, rows), execution, case)


def check_spread(draw: st.DataObject) -> None:
    """The same of queries whose keys are spread over ever more and fewer buckets."""
    rows, case = draw.draw(change_data()), draw.draw(change_cases())
    batches = draw.draw(splits(rows, least=2, most=5))
    db = database(rows)
    plan = changing_plan(rows, case)
    try:
        streams = [choose_stream(plan, None)]
    except InputError:
        assume(False)
    whole = changes_of(LocalChanges(plan, Execution.TPA).run_all(db.tables))
    execution = draw.draw(st.sampled_from(Execution))
    with suppress(InputError):  # it is a table, or not in all joins
        streams.append(choose_stream(plan, first_join(plan).sources[-1].name))

    def spread() -> ChangesPlan:
        number = draw.draw(st.sampled_from((2, 4, 4, 6)))
        parts = draw.draw(st.sampled_from(divisors(number)))
        parting = Parting(draw.draw(st.sampled_from(streams)), parts)
        plan = spread_joins(plan_of(database(rows, number), case), parting)
        assert isinstance(plan, ChangesPlan)
        return plan

    query = LocalChanges(spread(), execution, {"T": rows.static()})
    tables = []
    for parts in batches:
        with suppress(InputError):  # it cannot be split, and goes on as it was
            query = change_buckets(query, spread(), execution)
        tables.append(query.feed({name: rows.batch(name, *part) for name, part in parts.items()}))
    emitted = changes_of(pa.concat_tables(tables))
    check_net(emitted)
    check_same(emitted, settled(whole, case, rows), execution, case)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_change_of_a_spread_join_comes_once(part: int) -> None:
    check_generated(check_spread, part, CASES // 3 // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_change_of_an_answer_comes_once(part: int) -> None:
    check_generated(check, part, CASES // 3 // PARTS)


@settings(max_examples=CASES // 3)
@given(st.data())
def test_every_result_of_a_join_comes_once(data: st.DataObject) -> None:
    """On any graph of keys, with copied rows, static tables and ROWS windows."""
    case = data.draw(graph_cases())
    kernel = data.draw(st.sampled_from((Kernel.HASH, Kernel.HASH, Kernel.MERGE, Kernel.NESTED)))
    running = LocalStage(stage_of(case, kernel, data))
    for stream in case.ended:
        running.hold(stream, case.batch(stream))
    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_buffer, "FANOUT", data.draw(st.sampled_from((2, 3, 16))))
        for cuts in data.draw(join_splits(case, max_batches=8)):
            if data.draw(st.booleans()):
                running = deal_out(running, stage_of(case, kernel, data))
            fed = [None if s in case.ended else case.batch(s, *cut) for s, cut in enumerate(cuts)]
            results += running.feed(fed)
    marks = running.buckets[0].watermarks.marks
    until = min((m for m, w in zip(marks, case.rows, strict=True) if w), default=FOREVER)
    assert results_of(results) == naive.graph_join(case, until)


def stage_of(case: GraphCase, kernel: Kernel, data: st.DataObject) -> Stage:
    """The stage of a join in any number of buckets, over which keys may be spread."""
    number = data.draw(st.sampled_from(NUMBERS))
    parts = data.draw(st.sampled_from(divisors(number)))
    if parts == 1 or any(case.rows) or not case.keys[0]:
        return case.stage(kernel, number)
    return case.stage(kernel, number, (parts, data.draw(st.integers(0, len(case.keys) - 1))))


SPREAD = [Parting("A", 2), Parting("A", 1), Parting("B", 2), Parting("C", 2)]


@pytest.mark.parametrize("value", range(4))
@pytest.mark.parametrize("after", SPREAD)
@pytest.mark.parametrize("later", [0, 6])
def test_of_copies_one_counts_wherever_it_is(
    later: int, after: Parting, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows have a partner in one bucket; the other one drops its copies as chunks are merged."""
    monkeypatch.setattr(stream_buffer, "FANOUT", 2)
    db = LocalDatabase(2)
    for name in "ABC":
        db.create_stream(name, pa.Table.from_batches([keyed(0)]), time="ts")
    plan = db.plan(
        "SELECT A.v, B.v AS w, C.v AS x FROM A, B, C WINDOW = 5 SECONDS "
        "WHERE A.k = B.k AND B.k = C.k"
    )
    before, planned = spread_joins(plan, SPREAD[0]), spread_joins(plan, after)
    assert isinstance(before, JoinPlan)
    assert isinstance(planned, JoinPlan)
    query = LocalQuery(before, {})
    query.feed({"A": keyed(0, (1, value)), "B": keyed(0, (1, 50), (1, 50))})
    for second in range(20, 20 + later):
        other = keyed(second, (2, 0))
        query.feed({"A": other, "B": other})
    held = [6, 8] if later else [2, 2]
    assert sorted(one.operator.rows_held[1] for one in query.stage.buckets) == held
    query.stage = deal_out(query.stage, build_stage(planned))
    rows = query.feed({"C": keyed(1, (1, 9))})
    assert rows.drop_columns(["_time"]).to_pylist() == [{"v": value, "w": 50, "x": 9}] * 2


def keyed(second: int, *rows: tuple[int, int]) -> pa.RecordBatch:
    """Rows of a key and a value, at a second."""
    keys, values = ([row[place] for row in rows] for place in (0, 1))
    at = pa.array([second * 1_000_000] * len(rows), pa.timestamp("us", "UTC"))
    return pa.record_batch(
        {"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.int64()), "ts": at}
    )


@pytest.mark.parametrize("sql", SPLIT)
def test_what_is_split_by_columns_that_are_known_can_be_split(sql: str) -> None:
    rows = [(1_000 * at, at % 5, at % 3, None, None, None, None) for at in range(40)]
    data = to_batch(rows, SCHEMA)

    def plan(buckets: int) -> ChangesPlan:
        db = LocalDatabase(buckets)
        db.create_stream("A", pa.Table.from_batches([data]), time="ts")
        planned = db.plan(sql if "SESSION" in sql else f"{sql} EMIT CHANGES")
        assert isinstance(planned, ChangesPlan)
        return planned

    query, never = (LocalChanges(plan(number), Execution.TPA, {}) for number in (2, 1))
    emitted, right = [], []
    for first, number in enumerate((3, 1, 5, 4)):
        query = change_buckets(query, plan(number), Execution.TPA)
        some = {"A": data.slice(10 * first, 10)}
        emitted += changes_of(query.feed(some))
        right += changes_of(never.feed(some))
    assert any(len(stage.buckets) == 4 for stage in query.stages)
    assert sorted(map(repr, emitted)) == sorted(map(repr, right))


def test_a_bucket_gets_the_rows_that_are_routed_to_it() -> None:
    routing = Routing((2, 3), (((0,), None), ((1,), (0,))))
    rows = pa.RecordBatch.from_pydict({"a": np.arange(50), "b": np.arange(50) % 7})
    for stream in (0, 1):
        for bucket, part in enumerate(routing.split(rows, stream)):
            own = rows.filter(pa.array(routing.belong(rows, stream, bucket)))
            assert own.sort_by("a") == part.sort_by("a")
    assert [routing.first_copy(bucket, 0) for bucket in range(6)] == [0, 0, 0, 3, 3, 3]
    assert [routing.first_copy(bucket, 1) for bucket in range(6)] == [0, 1, 2, 3, 4, 5]
