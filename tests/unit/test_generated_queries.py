"""Statements in the local runner, in one piece and in micro-batches, against DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import SqlWindowError
from nilometer.local.database import LocalDatabase
from nilometer.local.run_query import LocalQuery
from nilometer.sql.plan.join_plan import JoinPlan
from tests.generated import check_generated
from tests.queries import RELATIONS, Data, QueryCase, data, statements
from tests.query_oracle import answer, sorted_rows

CASES = 1000
PARTS = 4


def database(rows: Data, buckets: int) -> LocalDatabase:
    db = LocalDatabase(buckets)
    for name in RELATIONS:
        table = pa.Table.from_batches([rows.batch(name)])
        db.create_stream(name, table, time="ts", lateness=rows.lateness[name])
    db.create_table("T", pa.Table.from_batches([rows.static()]))
    return db


def streamed(query: LocalQuery, rows: Data, draw: st.DataObject) -> pa.Table:
    """The results of all micro-batches, with a restart somewhere."""
    batches = draw.draw(st.integers(1, 4))
    restart = draw.draw(st.integers(0, batches - 1))
    cuts = {
        name: [
            0,
            *sorted(draw.draw(st.integers(0, len(own))) for _ in range(batches - 1)),
            len(own),
        ]
        for name, own in rows.streams.items()
    }
    results = []
    for number in range(batches):
        if number == restart:
            query.restart()
        results.append(
            query.feed({n: rows.batch(n, c[number], c[number + 1]) for n, c in cuts.items()})
        )
    return pa.concat_tables(results)


def plan_of(db: LocalDatabase, case: QueryCase) -> JoinPlan | None:
    """The plan; None if conditions on times contradict the windows, which is an error."""
    try:
        return db.plan(case.sql)
    except SqlWindowError as error:
        if "contradict" not in error.message:
            raise
        return None


def check(draw: st.DataObject) -> None:
    rows = draw.draw(data())
    case = draw.draw(statements())
    db = database(rows, draw.draw(st.sampled_from((1, 2, 3, 4))))
    plan, expected = plan_of(db, case), answer(case, rows)
    if plan is None:
        assert expected == [], case.sql
        return
    batch = sorted_rows(LocalQuery(plan).run_all(db.tables))
    assert batch == expected, case.sql
    result = sorted_rows(streamed(LocalQuery(plan, {"T": rows.static()}), rows, draw))
    if case.counted:
        settled = min(rows.watermark(name) for name in case.counted)
        batch = [row for row in batch if row[-1] < settled]
    assert result == batch, case.sql


@pytest.mark.parametrize("part", range(PARTS))
def test_batch_is_stream_is_duckdb(part: int) -> None:
    check_generated(check, part, CASES // 4 // PARTS)


@pytest.mark.soak
@pytest.mark.limit(3000)
@settings(max_examples=4 * CASES, derandomize=False)
@given(st.data())
def test_batch_is_stream_is_duckdb_for_ever_new_queries(draw: st.DataObject) -> None:
    check(draw)
