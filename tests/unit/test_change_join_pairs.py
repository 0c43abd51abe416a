"""Joins of changing answers look at pairs of rows that are there together, not at all pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels.window_join import join_new_rows
from nilometer.local.database import LocalDatabase
from nilometer.operators import change_join

TIMESTAMP = pa.timestamp("us", "UTC")
WINDOW = "[RANGE 20 SECONDS]"
STATEMENTS = {
    "not exists": f"SELECT A.k, A.v FROM A {WINDOW} WHERE NOT EXISTS "
    f"(SELECT 1 FROM B {WINDOW} WHERE B.k = A.k AND B.v > A.v)",
    "exists": f"SELECT A.k, A.v FROM A {WINDOW} WHERE EXISTS "
    f"(SELECT 1 FROM B {WINDOW} WHERE B.k = A.k AND B.v > A.v)",
    "aggregates": f"SELECT x.n, y.n AS m FROM (SELECT COUNT(*) AS n FROM A {WINDOW}) x FULL JOIN "
    f"(SELECT COUNT(*) AS n FROM B {WINDOW}) y ON x.n = y.n",
    "a mean": f"SELECT A.v FROM A {WINDOW}, (SELECT AVG(v) AS m FROM A {WINDOW}) g WHERE A.v > g.m",
}


def rows(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.arange(count) * 1_000_000, pa.int64()).cast(TIMESTAMP),
            "k": pa.array(np.zeros(count), pa.int32()),
            "v": pa.array(random.integers(0, 1000, count), pa.int32()),
        }
    )


def pairs_of(monkeypatch: pytest.MonkeyPatch, statement: str, count: int) -> int:
    """How many pairs a statement looks at."""
    seen = 0

    def counted(*arguments: object) -> object:
        nonlocal seen
        for tuples in join_new_rows(*arguments):  # type: ignore[arg-type]
            seen += len(tuples)
            yield tuples

    monkeypatch.setattr(change_join, "join_new_rows", counted)
    db = LocalDatabase()
    db.create_stream("A", rows(count, 1), time="ts")
    db.create_stream("B", rows(count, 2), time="ts")
    db.sql(statement)
    return seen


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_twice_the_rows_are_twice_the_pairs(
    monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    once, twice = (pairs_of(monkeypatch, statement, count) for count in (600, 1200))
    assert 0 < twice < 3 * once
