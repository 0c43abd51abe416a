"""Statements with table functions over rows cut into micro-batches: the cuts must not matter."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.local.database import LocalDatabase

TIMESTAMP = pa.timestamp("us", tz="UTC")
START = 1_700_000_000_000_000


def times_of(seconds: list[float]) -> pa.Array:
    """Times this many seconds after the start."""
    return pa.array([START + round(1e6 * one) for one in seconds], TIMESTAMP)


def counted(rows: pa.Table, before: int | None = None) -> Counter[str]:
    """How many copies there are of each row, among those strictly before a time."""
    if before is not None:
        rows = rows.filter(pc.less(rows["_time"].cast(pa.int64()), before))
    return Counter(repr(row) for row in rows.to_pylist())


def check_any_split(
    statement: str,
    stream: pa.Table,
    tables: Mapping[str, pa.Table] | None = None,
    *,
    seed: int,
    lateness: int = 0,
    buckets: int = 3,
) -> pa.Table:
    """The batch results over the stream S, after a run in micro-batches gave the same.

    Rows come in order within a lateness (seconds); the run is resumed from snapshots at random.
    """
    dice = random.Random(seed)
    whole = _database(stream, tables, lateness, buckets).sql(statement)
    query = _database(stream, tables, lateness, buckets).query(statement)
    arriving = _shuffled(stream, lateness, dice)
    parts, begin = [], 0
    while begin < len(arriving):
        end = begin + dice.choice([1, 2, 7, 50])
        rows = arriving.slice(begin, end - begin).combine_chunks().to_batches()[0]
        parts.append(query.feed({"S": rows}))
        if dice.random() < 0.3:
            query.restart()
        begin = end
    watermark = pc.max(stream["ts"]).cast(pa.int64()).as_py() - lateness * 1_000_000
    streamed = pa.concat_tables(parts)
    assert counted(streamed) == counted(whole, before=watermark)
    return whole


def _database(
    stream: pa.Table, tables: Mapping[str, pa.Table] | None, lateness: int, buckets: int
) -> LocalDatabase:
    database = LocalDatabase(buckets=buckets)
    database.create_stream("S", stream, time="ts", lateness=lateness * 1_000_000)
    for name, rows in (tables or {}).items():
        database.create_table(name, rows)
    return database


def _shuffled(stream: pa.Table, lateness: int, dice: random.Random) -> pa.Table:
    """The rows in a possible order of arrival: none later than the lateness allows."""
    times = stream["ts"].cast(pa.int64()).to_pylist()
    keys = [time + dice.uniform(0, lateness * 1e6) for time in times]
    return stream.take(sorted(range(len(times)), key=keys.__getitem__))
