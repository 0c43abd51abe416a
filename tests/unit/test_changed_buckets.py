"""The number of buckets changes between micro-batches: every result comes once."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.kernels.chunk import Kernel
from nilometer.kernels.routing import Routing
from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.local.run_stage import LocalStage
from nilometer.model.time import FOREVER
from nilometer.operators.stage import Execution
from nilometer.sql.plan.changes_plan import ChangesPlan
from tests import naive
from tests.cases import splits as join_splits
from tests.change_data import SCHEMA, change_data, splits, to_batch
from tests.change_oracle import changes_of, check_net, settled
from tests.change_queries import change_cases
from tests.dealt_out import change_buckets, deal_out
from tests.generated import check_generated
from tests.graph_cases import graph_cases
from tests.unit.test_generated_changes import check_same, database, plan_of
from tests.unit.test_join_graphs import results_of

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
    found = changes_of(pa.concat_tables(tables))
    check_net(found)
    check_same(found, settled(whole, case, rows), execution, case)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_change_of_an_answer_comes_once(part: int) -> None:
    check_generated(check, part, CASES // 3 // PARTS)


@settings(max_examples=CASES // 10)
@given(st.data())
def test_every_result_of_a_join_comes_once(data: st.DataObject) -> None:
    """On any graph of keys, with copied rows, static tables and ROWS windows."""
    case = data.draw(graph_cases())
    kernel = data.draw(st.sampled_from((Kernel.HASH, Kernel.HASH, Kernel.MERGE, Kernel.NESTED)))
    running = LocalStage(case.stage(kernel, data.draw(st.sampled_from(NUMBERS))))
    for stream in case.ended:
        running.hold(stream, case.batch(stream))
    found = []
    for cuts in data.draw(join_splits(case, most=8)):
        running = deal_out(running, case.stage(kernel, data.draw(st.sampled_from(NUMBERS))))
        fed = [None if s in case.ended else case.batch(s, *cut) for s, cut in enumerate(cuts)]
        found += running.feed(fed)
    marks = running.buckets[0].watermarks.marks
    until = min((m for m, w in zip(marks, case.rows, strict=True) if w), default=FOREVER)
    assert results_of(found) == naive.graph_join(case, until)


@pytest.mark.parametrize("sql", SPLIT)
def test_what_is_split_by_columns_that_are_known_can_be_split(sql: str) -> None:
    rows = [(1_000 * at, at % 5, at % 3, None, None, None, None) for at in range(40)]
    data = to_batch(rows, SCHEMA)

    def plan(buckets: int) -> ChangesPlan:
        db = LocalDatabase(buckets)
        db.create_stream("A", pa.Table.from_batches([data]), time="ts")
        found = db.plan(sql if "SESSION" in sql else f"{sql} EMIT CHANGES")
        assert isinstance(found, ChangesPlan)
        return found

    query, never = (LocalChanges(plan(number), Execution.TPA, {}) for number in (2, 1))
    found, right = [], []
    for first, number in enumerate((3, 1, 5, 4)):
        query = change_buckets(query, plan(number), Execution.TPA)
        some = {"A": data.slice(10 * first, 10)}
        found += changes_of(query.feed(some))
        right += changes_of(never.feed(some))
    assert any(len(stage.buckets) == 4 for stage in query.stages)
    assert sorted(map(repr, found)) == sorted(map(repr, right))


def test_a_bucket_gets_the_rows_that_are_routed_to_it() -> None:
    routing = Routing((2, 3), (((0,), None), ((1,), (0,))))
    rows = pa.RecordBatch.from_pydict({"a": np.arange(50), "b": np.arange(50) % 7})
    for stream in (0, 1):
        for bucket, part in enumerate(routing.split(rows, stream)):
            own = rows.filter(pa.array(routing.belong(rows, stream, bucket)))
            assert own.sort_by("a") == part.sort_by("a")
    firsts = [bucket for bucket in range(6) if routing.is_first_copy(bucket, 0)]
    assert firsts == [0, 3]
