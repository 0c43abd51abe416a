"""Queries whose answer changes, in the local runner: at every instant what DuckDB answers.

Every case runs as a batch, and in micro-batches with a restart under all three executions.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.local.database import LocalDatabase
from nilometer.model.time import EARLIEST
from tests.change_data import STREAMS, ChangeData, change_data, splits
from tests.change_oracle import (
    Change,
    answers,
    as_counter,
    changes_of,
    check_against,
    check_net,
    instants,
    is_same,
    plain_answer,
)
from tests.change_queries import ChangeCase, change_cases

CASES = int(os.environ.get("NILOMETER_CHANGE_CASES", "3000"))
EXECUTIONS = ("tpa", "nta", "ita")


def database(rows: ChangeData, buckets: int, execution: str) -> LocalDatabase:
    db = LocalDatabase(buckets, execution)
    for name in STREAMS:
        table = pa.Table.from_batches([rows.batch(name)])
        db.create_stream(name, table, time="ts", lateness=rows.lateness[name])
    db.create_table("T", pa.Table.from_batches([rows.static()]))
    return db


def streamed(
    db: LocalDatabase, case: ChangeCase, rows: ChangeData, draw: st.DataObject
) -> pa.Table:
    """The changes of all micro-batches, with a restart somewhere."""
    batches = draw.draw(splits(rows))
    restart = draw.draw(st.integers(0, len(batches) - 1))
    query, found = db.query(case.sql), []
    for number, parts in enumerate(batches):
        if number == restart:
            query.restart()
        found.append(query.feed({name: rows.batch(name, *part) for name, part in parts.items()}))
    return pa.concat_tables(found)


def before(changes: list[Change], case: ChangeCase, rows: ChangeData) -> list[Change]:
    """What a stream has emitted in the end: all strictly before the query's watermark."""
    marks = [rows.watermark(name) for name in case.streams]
    if not marks:
        return changes
    known = [mark for mark in marks if mark is not None]
    end = min(known) if len(known) == len(marks) else EARLIEST + 1
    return [change for change in changes if change[1] < max(end, EARLIEST + 1)]


def check(draw: st.DataObject) -> None:
    rows, case = draw.draw(change_data()), draw.draw(change_cases())
    buckets = draw.draw(st.sampled_from((1, 2, 3)))
    batch = changes_of(database(rows, buckets, "auto").sql(case.sql))
    check_net(batch)
    check_against(case, rows, batch)
    for execution in EXECUTIONS:
        db = database(rows, buckets, execution)
        found = changes_of(streamed(db, case, rows, draw))
        check_net(found)
        due = before(batch, case, rows)
        if execution == "ita":  # It may be behind, but leaves nothing out.
            last = max((time for _, time, _ in found), default=EARLIEST - 1)
            due = [change for change in due if change[1] <= last]
        assert is_same(as_counter(found), as_counter(due)), f"{execution}: {case.sql}"


@pytest.mark.timeout(900)
@settings(max_examples=CASES)
@given(st.data())
def test_at_every_instant_the_answer_is_that_of_the_plain_query(draw: st.DataObject) -> None:
    check(draw)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@settings(max_examples=3 * CASES, derandomize=False)
@given(st.data())
def test_ever_new_queries(draw: st.DataObject) -> None:
    check(draw)


@settings(max_examples=60)
@given(change_data(), change_cases())
def test_the_judge_answers_alone_what_it_answers_together(
    rows: ChangeData, case: ChangeCase
) -> None:
    """All instants are asked in one query; some of them again in a query of their own."""
    together = answers(case, rows)
    for at in instants(case, rows)[::9]:
        assert is_same(plain_answer(case, rows, at), together[at])
