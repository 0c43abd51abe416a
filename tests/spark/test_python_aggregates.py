"""Aggregates in Python on Spark: of rows that are there, streamed across a restart, and named."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import nilometer as nm
from tests.spark.harness import FileStream, run_to_end

DDL = "ts TIMESTAMP, k BIGINT, v DOUBLE, w BIGINT"
STATEMENT = """
    SELECT   k, spread(v) AS a, MAX(v) - MIN(v) AS b, weighted(v, w) AS c, SUM(v * w) AS d,
             round(total(v), 6) AS e, round(SUM(v), 6) AS f
    FROM     S [RANGE 3 SECONDS]
    GROUP BY k
"""


class Total:
    def __init__(self) -> None:
        self.sum = 0.0

    def update(self, value: float) -> None:
        self.sum += value

    def retract(self, value: float) -> None:
        self.sum -= value

    def finish(self) -> float:
        return self.sum


def connect(spark: SparkSession) -> nm.Database:
    db = nm.connect(spark)
    db.create_aggregate("spread", lambda v: v.max() - v.min())
    db.create_aggregate("weighted", lambda v, w: (v * w).sum())
    db.create_aggregate("total", Total)
    return db


def readings(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch(
        {
            "ts": pa.array([n * 500_000 for n in numbers], pa.timestamp("us", tz="UTC")),
            "k": pa.array([n % 3 for n in numbers], pa.int64()),
            "v": pa.array([n * n % 11 / 4 for n in numbers], pa.float64()),
            "w": pa.array([n % 5 for n in numbers], pa.int64()),
        }
    )


def test_they_are_what_built_in_ones_are(spark: SparkSession, tmp_path: Path) -> None:
    db = connect(spark)
    db.create_stream("S", spark.createDataFrame(readings(0, 40).to_pandas(), DDL), time="ts")
    expected = [tuple(row) for row in db.sql(STATEMENT).collect()]
    assert len(expected) > 80
    stream = FileStream(tmp_path / "S", DDL)
    for part, (first, count) in enumerate(((0, 17), (17, 23))):
        stream.add(readings(first, count))
        db = connect(spark)
        db.create_stream("S", stream.read(spark), time="ts")
        run_to_end(db.sql(STATEMENT), tmp_path)
        rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect()]
        assert bool(rows) or part == 0
    assert {*rows} <= {*expected}
    assert len(rows) > 60
    for row in (*expected, *rows):
        assert (row[1], row[3], row[5]) == (row[2], row[4], row[6])
