"""Streams of sales, for tests of executions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from nilometer.local.database import LocalDatabase

TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("ts", TIMESTAMP), ("price", pa.int64())])
EXECUTIONS = ("ita", "tpa", "nta")
SUM = "SELECT SUM(price) AS total FROM S [RANGE {} MICROSECONDS] WHERE price > 4"


def sales(rows: Iterable[tuple[int, int]]) -> pa.RecordBatch:
    times, prices = zip(*rows, strict=True)
    return pa.record_batch([pa.array(times, TIMESTAMP), pa.array(prices)], schema=SCHEMA)


def market(
    rows: Sequence[tuple[int, int]] = (), names: Sequence[str] = ("S",), execution: str = "auto"
) -> LocalDatabase:
    db = LocalDatabase(execution=execution)
    table = pa.Table.from_batches([sales(rows)] if rows else [], SCHEMA)
    for name in names:
        db.create_stream(name, table, time="ts")
    return db
