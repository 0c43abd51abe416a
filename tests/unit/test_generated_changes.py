"""Queries whose answer changes, in the local runner: at every instant what DuckDB answers.

Every case runs as a batch, and in micro-batches with a restart under all three executions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.model.time import EARLIEST
from nilometer.operators.stage import Execution
from nilometer.sql.plan.changes_plan import ChangesPlan
from tests.change_data import SCHEMA, STREAMS, ChangeData, Parts, change_data, splits
from tests.change_oracle import (
    Change,
    Row,
    _Judge,
    answers,
    as_counter,
    changes_of,
    check_against,
    check_net,
    instants,
    is_same,
    may_lose_rows,
    plain_answer,
    settled,
)
from tests.change_queries import ChangeCase, change_cases
from tests.generated import check_generated

CASES = int(os.environ.get("NILOMETER_CHANGE_CASES", "1500"))
PARTS = 5


def database(rows: ChangeData, buckets: int = 1) -> LocalDatabase:
    db = LocalDatabase(buckets)
    for name in STREAMS:
        table = pa.Table.from_batches([rows.batch(name)])
        db.create_stream(name, table, time="ts", lateness=rows.lateness[name])
    db.create_table("T", pa.Table.from_batches([rows.static()]))
    return db


def plan_of(db: LocalDatabase, case: ChangeCase) -> ChangesPlan:
    plan = db.plan(case.sql)
    assert isinstance(plan, ChangesPlan)
    return plan


def streamed(query: LocalChanges, rows: ChangeData, batches: list[Parts], restart: int) -> pa.Table:
    """The changes of all micro-batches, with a restart before one of them."""
    changes = []
    for number, parts in enumerate(batches):
        if number == restart:
            query.restart()
        changes.append(query.feed({name: rows.batch(name, *part) for name, part in parts.items()}))
    return pa.concat_tables(changes)


def check(draw: st.DataObject) -> None:
    rows, case = draw.draw(change_data()), draw.draw(change_cases())
    db = database(rows, draw.draw(st.sampled_from((1, 1, 2))))
    batches = draw.draw(splits(rows, most=3))
    restart = draw.draw(st.integers(0, len(batches) - 1))
    plan = plan_of(db, case)
    whole = changes_of(LocalChanges(plan, Execution.TPA).run_all(db.tables))
    check_net(whole)
    check_against(case, rows, whole)
    due = settled(whole, case, rows)
    for execution in Execution:
        query = LocalChanges(plan, execution, {"T": rows.static()})
        emitted = changes_of(streamed(query, rows, batches, restart))
        check_net(emitted)
        check_same(emitted, due, execution, case)


def check_same(
    emitted: list[Change], due: list[Change], execution: Execution, case: ChangeCase
) -> None:
    if execution is Execution.ITA:  # It may be behind, but leaves nothing out.
        last = max((time for _, time, _ in emitted), default=EARLIEST - 1)
        due = [change for change in due if change[1] <= last]
    assert is_same(as_counter(emitted), as_counter(due)), f"{execution}: {case.sql}"


@pytest.mark.parametrize("part", range(PARTS))
def test_at_every_instant_the_answer_is_that_of_the_plain_query(part: int) -> None:
    check_generated(check, part, CASES // 5 // PARTS)


@pytest.mark.soak
@pytest.mark.limit(3000)
@settings(max_examples=6 * CASES, derandomize=False)
@given(st.data())
def test_ever_new_queries(draw: st.DataObject) -> None:
    check(draw)


@settings(max_examples=CASES // 30)
@given(change_data(), change_cases(), st.sampled_from(Execution))
def test_tuple_by_tuple(rows: ChangeData, case: ChangeCase, execution: Execution) -> None:
    db = database(rows)
    plan = plan_of(db, case)
    whole = changes_of(LocalChanges(plan, Execution.TPA).run_all(db.tables))
    query = LocalChanges(plan, execution, {"T": rows.static()})
    emitted: list[Change] = []
    for name in STREAMS:
        for number in range(len(rows.streams[name])):
            emitted += changes_of(query.feed({name: rows.batch(name, number, number + 1)}))
    check_net(emitted)
    check_same(emitted, settled(whole, case, rows), execution, case)


@settings(max_examples=60)
@given(change_data(), change_cases())
def test_the_judge_answers_alone_what_it_answers_together(
    rows: ChangeData, case: ChangeCase
) -> None:
    """All instants are asked in one query; some of them again in a query of their own."""
    assume(not may_lose_rows(case.oracle))
    together = answers(case, rows)
    for at in instants(case, rows)[::9]:
        assert is_same(plain_answer(case, rows, at), together[at])


def test_the_judge_sees_the_row_of_an_aggregate_of_nothing() -> None:
    """DuckDB loses it if it is asked for all instants at once; found by generated cases."""
    aggregate = "SELECT MIN(a.k) AS c0 FROM R0 a [ROWS 1]"
    nothing = "(SELECT a.k AS c0 FROM R0 a WHERE a.ts <= _i._t)"
    oracle = f"{nothing} UNION (SELECT min(a.k) AS c0 FROM R0 a WHERE a.ts <= _i._t)"
    sql = f"(SELECT a.k AS c0 FROM R0 a [ROWS 1]) UNION ({aggregate})"
    case = ChangeCase(sql, oracle, frozenset({"R0"}), 0, None)
    rows = ChangeData(0, dict.fromkeys(STREAMS, ()), dict.fromkeys(STREAMS, 0), ())
    plan = plan_of(database(rows), case)
    emitted = changes_of(LocalChanges(plan, Execution.TPA).run_all(database(rows).tables))
    assert emitted == [((None,), EARLIEST, 1)]
    check_against(case, rows, emitted)


def test_the_judge_answers_instant_by_instant_where_duckdb_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It breaks on a few generated queries over all instants at once, and is started anew."""
    broken = []
    ask = _Judge.ask

    def breaks(judge: _Judge, sql: str, tables: Mapping[str, pa.Table]) -> list[Row]:
        if "LATERAL" not in sql:
            return ask(judge, sql, tables)
        broken.append(sql)
        raise duckdb.InternalException("INTERNAL Error: a test")

    monkeypatch.setattr(_Judge, "ask", breaks)
    sql, oracle = "SELECT a.k FROM R0 a [ROWS 1]", "SELECT max(a.k) FROM R0 a WHERE a.ts = _i._t"
    case = ChangeCase(sql, oracle, frozenset({"R0"}), 0, 3)
    row = (4, 7, *(None for _ in range(len(SCHEMA) - 2)))
    rows = ChangeData(
        0, {**dict.fromkeys(STREAMS, ()), "R0": (row,)}, dict.fromkeys(STREAMS, 0), ()
    )
    by_instant = answers(case, rows)
    assert broken
    assert {at for at, answer in by_instant.items() if answer == {(7,): 1}} == set()
    by_instant = answers(replace(case, every=2), rows)
    assert {at for at, answer in by_instant.items() if answer == {(7,): 1}} == {4, 5}
    assert set(by_instant) == set(instants(replace(case, every=2), rows))


def test_a_judge_that_broke_is_started_anew() -> None:
    judge, numbers = _Judge(), {"Numbers": pa.table({"n": [1, 2]})}

    class Broken:
        def register(self, name: str, table: pa.Table) -> None: ...

        def execute(self, sql: str) -> None:
            raise duckdb.InternalException("INTERNAL Error: a test")

    judge._connection = Broken()  # type: ignore[assignment]
    with pytest.raises(duckdb.InternalException):
        judge.ask("SELECT sum(n) FROM Numbers", numbers)
    assert judge.ask("SELECT sum(n) FROM Numbers", numbers) == [(3,)]
