"""The planner's advice where it helps: the streams of Golab Table 6 as one query in SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels import window_join
from nilometer.local.database import LocalDatabase
from nilometer.model.join_cost import Order, StreamLoad, orders_of
from nilometer.sql.catalog import Statistics
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer_papers.experiments.golab.order_tables import TABLE_6

SECOND = 1_000_000
LENGTH = 200
"""Seconds of each stream: twice the windows."""
BATCHES = 20
STREAMS = ("S1", "S2", "S3", "S4")
STATEMENT = (
    f"SELECT {{}} S1.k FROM {', '.join(f'{name} [RANGE 100 S]' for name in STREAMS)} "
    "WHERE S1.k = S2.k AND S2.k = S3.k AND S3.k = S4.k"
)


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    """Rates and distinct values as declared, values of fewer among those of more."""
    made, random = LocalDatabase(), np.random.default_rng(6)
    for name, load in zip(STREAMS, TABLE_6, strict=True):
        stated = Statistics(load.rate, {"k": load.distinct_of(0)})
        made.create_stream(name, rows(load, random), time="ts", statistics=stated)
    return made


def rows(load: StreamLoad, random: np.random.Generator) -> pa.Table:
    count = round(load.rate * LENGTH)
    times = np.sort(random.integers(0, LENGTH * SECOND, count))
    keys = random.permutation(np.arange(count) % round(load.distinct_of(0)))
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys})


def test_explain_shows_the_order_of_the_heuristic(db: LocalDatabase) -> None:
    """Each origin has its own: rows are found by key, so a step costs what matches."""
    lines = explain_plan(db.plan(STATEMENT.format(""))).splitlines()
    (first,) = (i for i, line in enumerate(lines) if line.startswith("Probe order of new rows"))
    assert lines[first : first + 5] == [
        "Probe order of new rows (as declared; chosen again as rates change)",
        "  new S1  S2, S3, S4  (4,100 rows probed per second)",
        "  new S2  S3, S4, S1  (455 rows probed per second)",
        "  new S3  S2, S4, S1  (451 rows probed per second)",
        "  new S4  S2, S3, S1  (385.5 rows probed per second)",
    ]


@pytest.mark.parametrize("hint", ["EAGER", "LAZY", "MULTIWAY_HASH(buckets = 5)"])
def test_loops_of_a_hint_have_the_papers_best_order(db: LocalDatabase, hint: str) -> None:
    """Section 5.1: the best global order is S2, S1, S3, S4."""
    lines = explain_plan(db.plan(STATEMENT.format(f"/*+ {hint} */"))).splitlines()
    assert "  order: S2, S1, S3, S4" in lines


def test_the_planned_order_probes_fewer_rows(
    db: LocalDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, results = probed(db, monkeypatch, None)
    as_written, same = probed(db, monkeypatch, (0, 1, 2, 3))
    dear, same_again = probed(db, monkeypatch, (0, 3, 2, 1))
    assert results == same == same_again > 10_000
    assert planned < 0.7 * as_written
    assert planned < 0.2 * dear


def probed(
    db: LocalDatabase, monkeypatch: pytest.MonkeyPatch, order: Order | None
) -> tuple[int, int]:
    """How many rows the columnar join looks at, and its results; by default in its own order."""
    counted, look_up = 0, window_join._look_up

    def count(*given):
        nonlocal counted
        candidates = look_up(*given)
        counted += candidates.total
        return candidates

    query, results = db.query(STATEMENT.format("")), 0
    with monkeypatch.context() as patched:
        patched.setattr(window_join, "_look_up", count)
        if order is not None:
            running = query.stage.buckets[0].operator.orders
            patched.setattr(running, "update", lambda sides: orders_of(order))
        for number in range(BATCHES):
            results += len(query.feed({name: part(db.tables[name], number) for name in STREAMS}))
    if order is None:
        assert query.stage.buckets[0].operator.orders.orders == query.plan.orders
    return counted, results


def part(given: pa.RecordBatch, number: int) -> pa.RecordBatch:
    times = given.column("ts").cast(pa.int64()).to_numpy()
    length = LENGTH * SECOND // BATCHES
    first, last = np.searchsorted(times, [number * length, (number + 1) * length])
    return given.slice(first, last - first)
