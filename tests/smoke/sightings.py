"""Two streams of sightings, and what queries over them must say, worked out row by row."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64()), ("id", pa.int64())])
DDL = "ts TIMESTAMP, k BIGINT, id BIGINT"
WINDOW = 40
JOIN = (
    f"SELECT A.id AS a, B.id AS b FROM A, B WINDOW (A, B) = {WINDOW} MICROSECONDS WHERE A.k = B.k"
)

Row = tuple[int, int, int]
"""(microseconds, key, number)"""


def sightings(seed: int, count: int, first: int = 0) -> list[Row]:
    """Rows in the order of their times."""
    rng = random.Random(f"{seed} {first}")
    return [(3 * n, rng.randrange(5), n) for n in range(first, first + count)]


def joined(a: Sequence[Row], b: Sequence[Row]) -> Counter[tuple[int, int]]:
    """All pairs with the same key within the window of each other."""
    return Counter((i, j) for s, k, i in a for t, m, j in b if k == m and abs(s - t) <= WINDOW)


def counted(a: Sequence[Row], at: int) -> Counter[tuple[int, int, int]]:
    """For every key how many of its rows are in the window at an instant, and their sum."""
    by_key: dict[int, list[int]] = {}
    for t, k, i in a:
        if t <= at <= t + WINDOW:
            by_key.setdefault(k, []).append(i)
    return Counter((k, len(ids), sum(ids)) for k, ids in by_key.items())


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def write_files(folder: Path, rows: Sequence[Row], each: int) -> None:
    """Files of so many rows, of which Spark reads the first first."""
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, len(rows), each)):
        file = folder / f"{number:04d}.parquet"
        pq.write_table(pa.Table.from_batches([to_batch(rows[first : first + each])]), file)
        os.utime(file, (1_600_000_000 + number,) * 2)
