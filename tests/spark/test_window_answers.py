"""Answers of windows as streams, on Spark across a restart: what the local engine says of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.local.database import LocalDatabase
from tests.spark.harness import FileStream, run_to_end
from tests.spark.test_table_functions import SECOND, START

DDL = "ts TIMESTAMP, k BIGINT, v DOUBLE"
STATEMENT = """
    SELECT k, SUM(v) AS total,
           SUM(v) - LAG(SUM(v)) OVER (PARTITION BY k ORDER BY window_end) AS step
    FROM   TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '10' SECONDS)
    GROUP  BY k, window_end
    UNION ALL
    SELECT k, total, top
    FROM   (SELECT k, window_end, SUM(v) AS total
            FROM   TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '5' SECONDS)
            GROUP  BY k, window_end)
    MATCH_RECOGNIZE (PARTITION BY k ORDER BY window_end
                     MEASURES FIRST(total) AS total, LAST(total) AS top
                     PATTERN (A B+) WITHIN 1 MINUTE DEFINE B AS total > PREV(total))
"""


def readings(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    times = [START + n * SECOND for n in numbers]
    return pa.record_batch(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array([n % 3 for n in numbers], pa.int64()),
            "v": pa.array([float(n * 37 % 11) for n in numbers]),
        }
    )


def test_streamed_across_a_restart_they_are_those_of_the_local_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = FileStream(tmp_path / "S", DDL)
    stream.add(readings(0, 33))
    stream.add(readings(33, 40))
    for more in ((73, 27), None):
        db = nm.connect(spark)
        db.create_stream("S", stream.read(spark), time="ts")
        run_to_end(db.sql(STATEMENT), tmp_path)
        if more is not None:
            stream.add(readings(*more))
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    emitted = sorted(repr((row[0], row[1], row[2], row[3].timestamp())) for row in rows)
    local = LocalDatabase(buckets=2)
    local.create_stream("S", pa.Table.from_batches([readings(0, 100)]), time="ts")
    last = (START + 99 * SECOND) / SECOND
    expected = [tuple(row.values()) for row in local.sql(STATEMENT).to_pylist()]
    due = [row for row in expected if row[3].timestamp() <= last]
    assert emitted == sorted(repr((*row[:3], row[3].timestamp())) for row in due)
    assert len(due) > 20
