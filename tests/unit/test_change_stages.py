"""Windowed plans in several buckets and stages: rows that must meet do, and clocks agree."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels.admit import Punctuation
from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.model.time import EARLIEST, LATEST
from nilometer.operators.envelope import Header, seal_in_memory
from nilometer.operators.watermarks import NEVER
from nilometer.spark import run_batch
from nilometer.sql.physical.stages import cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan

TS = pa.timestamp("us", tz="UTC")
W = "[RANGE 20 MICROSECONDS]"


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of ts, j INT, k BIGINT, x DOUBLE, d DECIMAL."""
    kinds = [TS, pa.int32(), pa.int64(), pa.float64(), pa.decimal128(10, 2)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in kinds]
    columns[-1] = [None if value is None else Decimal(value) for value in columns[-1]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, ["ts", "j", "k", "x", "d"])


def some_rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    rows = []
    for time in range(0, 60, 3):
        values = [None if v == 5 else int(v) for v in rng.integers(0, 6, 4)]
        rows.append((time, *values[:2], None if values[2] is None else float(values[2]), values[3]))
    return table(rows)


def database(buckets: int, **options: Any) -> LocalDatabase:
    db = LocalDatabase(buckets=buckets, **options)
    for number, name in enumerate("ABC"):
        db.create_stream(name, some_rows(number), time="ts")
    return db


def changes(table: pa.Table) -> Counter[tuple[Any, ...]]:
    times = table.column("_time").cast(pa.int64())
    table = table.set_column(table.num_columns - 2, "_time", times)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return Counter(map(repr, rows))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT k FROM A {W} GROUP BY k INTERSECT SELECT x FROM B {W}",
        f"SELECT k FROM A {W} GROUP BY k UNION SELECT d FROM B {W} GROUP BY d",
        f"SELECT A.j FROM A {W}, B {W} WHERE A.j = B.x INTERSECT SELECT x FROM C {W}",
        f"SELECT A.j FROM A {W}, B {W} WHERE A.j = B.x EXCEPT SELECT d FROM C {W}",
        f"SELECT B.x FROM (SELECT j FROM A {W} GROUP BY j) q, B {W} WHERE q.j = B.x EMIT CHANGES",
        f"SELECT q.j, p.x FROM (SELECT j FROM A {W} GROUP BY j) q "
        f"LEFT JOIN (SELECT x FROM B {W} GROUP BY x) p ON q.j = p.x",
        f"SELECT k FROM A {W} WHERE EXISTS (SELECT 1 FROM B {W} WHERE B.x = A.k)",
        f"SELECT k FROM A {W} WHERE k IN (SELECT d FROM B {W})",
        f"SELECT j FROM A [PARTITION BY j ROWS 2] INTERSECT SELECT x FROM B {W}",
        f"SELECT k, COUNT(*) AS n FROM (SELECT j AS k FROM A {W} UNION ALL SELECT x FROM B {W}) s "
        "GROUP BY k",
        f"SELECT n FROM (SELECT k, COUNT(*) AS n FROM A {W} GROUP BY k) q "
        f"UNION ALL SELECT x FROM B {W}",
    ],
)
def test_columns_of_different_types_meet_in_any_number_of_buckets(statement: str) -> None:
    alone = changes(database(1).sql(statement))
    assert len(alone) > 4
    for buckets in (2, 3, 8):
        assert changes(database(buckets).sql(statement)) == alone


def test_large_integers_are_rounded_like_spark_does() -> None:
    db = LocalDatabase()
    db.create_stream("A", table([(0, 1, 2**53 + 1, 1.0, 1)]), time="ts")
    for source in (f"A {W}", "A [ROWS 1]", f"(SELECT k, COUNT(*) AS n FROM A {W} GROUP BY k) a"):
        answer = db.sql(f"SELECT k FROM {source} UNION SELECT x FROM A {W}")
        assert float(2**53) in answer.column(0).to_pylist()


def test_nothing_is_computed_of_rows_that_were_never_there_together() -> None:
    db = LocalDatabase()
    db.create_stream("A", table([(100, 1, 1, 0.0, 0)]), time="ts")
    db.create_stream("B", table([(0, 0, 1, 0.0, 0), (100, 2, 1, 0.0, 0)]), time="ts")
    sides = (
        "(SELECT k, COUNT(*) AS n FROM A [RANGE 5 us] GROUP BY k) a, "
        "(SELECT k, j, COUNT(*) AS m FROM B [RANGE 5 us] GROUP BY k, j) b"
    )
    for statement in (
        f"SELECT a.n / b.j AS q FROM {sides} WHERE a.k = b.k",
        f"SELECT 5e-1 AS q FROM {sides} WHERE a.k = b.k AND a.n / b.j = 5e-1",
    ):
        answer = changes(db.sql(statement))
        assert answer == Counter({"(0.5, 100, 1)": 1, "(0.5, 106, -1)": 1})


def test_a_guard_keeps_a_division_from_failing() -> None:
    db = LocalDatabase()
    db.create_stream("A", table([(0, 0, 1, 0.0, 0), (1, 5, 2, 0.0, 0)]), time="ts")
    answer = db.sql(f"SELECT k FROM A {W} WHERE j <> 0 AND 10 / j > 1 EMIT CHANGES")
    assert answer.column("k").to_pylist() == [2, 2]


@pytest.mark.parametrize("execution", ["tpa", "nta"])
def test_what_ends_after_the_year_9999_never_ends(execution: str) -> None:
    db = LocalDatabase(execution=execution)
    rows = table([(LATEST, 1, 1, 1.0, 1)])
    db.create_stream("A", rows, time="ts")
    statement = f"SELECT k, COUNT(*) AS n FROM A {W} GROUP BY k"
    assert db.sql(statement).column("_diff").to_pylist() == [1]
    query = db.query(statement)
    assert query.feed({"A": rows.to_batches()[0]}).num_rows == 0  # another may have that time, too


def idle_database(idle: dict[str, int]) -> LocalDatabase:
    db = LocalDatabase(buckets=2)
    for name in "AB":
        db.create_stream(name, table([]), time="ts", idle=idle.get(name))
    db.create_table("T", pa.table({"label": ["a", "b", "b"]}))
    return db


def test_an_idle_stream_follows_those_of_other_stages() -> None:
    statement = (
        f"SELECT k FROM B {W} EXCEPT "
        f"SELECT n FROM (SELECT k, COUNT(*) AS n FROM A {W} GROUP BY k) q"
    )
    query = idle_database({"A": 100}).query(statement)
    assert isinstance(query, LocalChanges)
    assert len(query.stages) == 2
    query.feed({"A": table([(0, 1, 1, 1.0, 1)]).to_batches()[0]}, now=0)
    answer = Counter[tuple[Any, ...]]()
    for now in (50, 150, 300):
        rows = table([(now, 7, 7, 1.0, 1)]).to_batches()[0]
        answer += changes(query.feed({"B": rows}, now=now))
        query.restart()
    assert answer == Counter(
        {"(7, 50, 1)": 1, "(7, 71, -1)": 1, "(7, 150, 1)": 1, "(7, 171, -1)": 1}
    )


def test_an_idle_stream_does_not_end_because_others_have() -> None:
    statement = (
        "SELECT q.label, A.k FROM (SELECT label, COUNT(*) AS n FROM T GROUP BY label) q, "
        f"A {W} WHERE q.n = A.k EMIT CHANGES"
    )
    query = idle_database({"A": 100}).query(statement)
    for now in (0, 500, 1000):  # silent, but alone
        query.feed({}, now=now)
    rows = table([(2000, 1, 1, 1.0, 1), (2100, 1, 1, 1.0, 1)])
    answer = changes(query.feed({"A": rows.to_batches()[0]}, now=2000))
    assert answer == Counter({"('a', 1, 2000, 1)": 1, "('a', 1, 2021, -1)": 1})


def test_since_ever_waits_for_stages_that_have_not_run() -> None:
    """On Spark a stage runs only when something comes to it."""
    statement = (
        f"SELECT COUNT(*) AS c FROM (SELECT q.n FROM (SELECT label, COUNT(*) AS n FROM T "
        f"GROUP BY label) q LEFT JOIN A {W} ON q.n < A.k UNION ALL SELECT B.k FROM B {W}) s"
    )
    db = idle_database({})
    plan = db.plan(statement)
    assert isinstance(plan, ChangesPlan)
    last = cut_into_stages(plan).stages[-1].stage
    [run] = LocalChanges(plan, None).stages[-1].buckets
    senders = [(i, clock.senders) for i, clock in enumerate(last.clocks) if clock.senders]
    assert senders
    assert list(run.process(last.no_rows())) == []
    assert run.frontier == NEVER
    batch = last.no_rows()
    batch.frontiers = {(i, sender): EARLIEST + 1 for i, n in senders for sender in range(n)}
    [zero] = run.process(batch)
    assert zero.column(0).to_pylist() == [0]
    assert run.frontier == EARLIEST + 1


def test_static_tables_are_joined_as_wholes_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_batch, "_ROWS_PER_STEP", 2)
    db = LocalDatabase()
    ids = pa.array(range(30), pa.int64())
    db.create_table("T", pa.table({"id": ids}))
    db.create_table("U", pa.table({"id": ids, "v": ids}))
    plan = db.plan("SELECT T.id, U.v FROM T, U WHERE T.id = U.id EMIT CHANGES")
    assert isinstance(plan, ChangesPlan)
    [planned] = cut_into_stages(plan).stages
    time = pa.array([EARLIEST] * 30, pa.int64()).cast(TS)
    envelopes = []
    for stream, schema in enumerate(planned.stage.operator.schemas):
        own = [time if field.type == TS else ids for field in schema]
        rows = pa.RecordBatch.from_arrays(own, schema=schema)
        envelopes += [(Header(stream, Punctuation()), rows.slice(n, 1)) for n in range(30)]
    columns = [
        pa.array([0] * len(envelopes), pa.int32()),
        pa.array([EARLIEST] * len(envelopes), pa.int64()),
        seal_in_memory(envelopes),
    ]
    batch = pa.RecordBatch.from_arrays(columns, ["bucket", "start", "body"])
    outputs = list(run_batch.HostInOrder(planned.stage)(iter([batch])))
    assert sum(map(len, outputs)) == 30
