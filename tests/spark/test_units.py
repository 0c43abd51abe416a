"""Units on both sides of a query on Spark: readings go through one, results to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.deliveries.status import DeliveryState
from nilometer.errors import SqlError
from tests.patience import wait_for

STREAM = (
    "CREATE STREAM Rooms (room STRING, c DOUBLE, ts TIMESTAMP, TIME ts) "
    "FROM file WITH (address = '{}', unit = 'celsius', "
    "unit_reads = 'room STRING, f DOUBLE, ts TIMESTAMP')"
)


def celsius(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    return [
        {"room": one["room"], "c": round((one["f"] - 32) / 1.8, 3), "ts": one["ts"]}
        for one in rows.to_pylist()
        if one["f"] >= 0
    ]


def connect(spark: SparkSession, tmp_path: Path) -> nm.Database:
    return nm.connect(spark, path=tmp_path / "db", delivery_folders=[tmp_path / "out"])


def test_from_a_unit_through_a_query_to_deliveries(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        {"room": "hall", "f": f, "ts": f"2026-01-31T12:00:{at:02d}Z"}
        for at, f in enumerate([50, -1, 212, 32])
    ]
    source = tmp_path / "rooms.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    got: list[dict[str, Any]] = []
    with connect(spark, tmp_path) as db:
        with pytest.raises(SqlError, match="there is no unit celsius"):
            db.execute(STREAM.format(source))
        db.register_unit("celsius", celsius)
        db.register_unit("take", got.extend)
        db.execute(STREAM.format(source))
        db.execute("CREATE QUERY hot AS SELECT room, c FROM Rooms WHERE c > 5")
        db.execute("CREATE DELIVERY calls FROM hot TO python WITH (function = take)")
        db.execute("CREATE DELIVERY files FROM hot TO parquet WITH (every = '0s')")
        wait_for(lambda: len(got) == 2)
        wait_for(lambda: all(one.delivered == 2 for one in db.deliveries()))
        assert [one.state for one in db.deliveries()] == [DeliveryState.RUNNING] * 2
        with pytest.raises(SqlError, match="delivery calls delivers the results of hot"):
            db.execute("DROP QUERY hot")
    assert [(row["room"], row["c"]) for row in got] == [("hall", 10.0), ("hall", 100.0)]
    assert pq.read_table(tmp_path / "out" / "files").column("c").to_pylist() == [10.0, 100.0]
    with connect(spark, tmp_path) as db:
        db.register_unit("celsius", celsius)
        db.register_unit("take", got.extend)
        db.resume()
        assert [one.state for one in db.deliveries()] == [DeliveryState.RUNNING] * 2
        db.execute("DROP DELIVERY calls")
        db.execute("DROP DELIVERY files")
        db.execute("DROP QUERY hot")
    assert len(got) == 2  # nothing came again
