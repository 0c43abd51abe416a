"""MATCH_RECOGNIZE: generated patterns, rows and restarts against a naive matcher, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from tests.match_cases import SECOND, generate, generate_rows
from tests.naive_match import Row

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("s", pa.string()),
    ]
)


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [[row[name] for row in rows] for name in ("t", "k", "v", "s")]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def database(rows: Sequence[Row], buckets: int = 1, lateness: int = 0) -> LocalDatabase:
    db = LocalDatabase(buckets)
    table = pa.Table.from_batches([to_batch(rows)])
    db.create_stream("S", table, time="ts", lateness=lateness)
    return db


def answer(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Results as tuples, times as numbers."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.mark.parametrize("seed", range(150))
def test_generated_patterns(seed: int) -> None:
    """Each statement over 12 partitions, at once, and streamed with disorder and restarts."""
    rng = Random(seed)
    case = generate(rng)
    rows = generate_rows(rng, rng.choice([30, 90]), 12 if case.partitioned else 1)
    buckets = rng.choice([1, 2])
    expected = case.answer(rows, ended=True)
    assert answer(database(rows, buckets).sql(case.sql)) == expected, case.sql
    query = database([], buckets, lateness=2 * SECOND).query(case.sql)
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(rng.randint(0, 6)))
    found: Counter[tuple[Any, ...]] = Counter()
    for first, end in pairwise([0, *cuts, len(rows)]):
        found += answer(query.feed({"S": to_batch(rows[first:end])}))
        query.restart()
    last = {"t": 10**6 * SECOND, "k": 99, "v": None, "s": None}
    found += answer(query.feed({"S": to_batch([last])}))
    assert found == case.answer(rows, ended=False), case.sql
