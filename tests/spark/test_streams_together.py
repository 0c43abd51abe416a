"""Streams that UNION ALL puts together, in windows and ranked there, as Spark says of a batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from tests.spark.harness import FileStream, run_to_end

SECOND = 1_000_000
DDL = "ts TIMESTAMP, k INT, v DOUBLE"
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int32()), ("v", pa.float64())],
)
TOGETHER = "SELECT ts, k, v FROM S UNION ALL SELECT ts, k + 1, v * 2 FROM R WHERE v > 0"
ASKED = (
    "SELECT window_end AS w, k, SUM(v) AS t, RANK() OVER (PARTITION BY window_end ORDER BY SUM(v) "
    f"DESC) AS r FROM TUMBLE(({TOGETHER}), 10 SECONDS) GROUP BY window_end, k"
)
RIGHT = (
    "SELECT w, k, t, RANK() OVER (PARTITION BY w ORDER BY t DESC) AS r FROM (SELECT "
    f"window(ts, '10 seconds').end AS w, k, SUM(v) AS t FROM ({TOGETHER}) GROUP BY 1, 2)"
)
Row = tuple[int, int, float | None]


def batch(rows: list[Row]) -> pa.RecordBatch:
    arrays = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def collected(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.select("w", "k", "t", "r").collect()))


def test_streams_put_together_are_ranked_in_windows(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(11)

    def some_rows() -> list[Row]:
        times = sorted(random.randrange(1000 * SECOND) for _ in range(200))
        return [(t, random.randrange(3), random.choice([None, -0.5, 1.0, 2.25])) for t in times]

    rows = {"S": some_rows(), "R": some_rows()}
    for name, mine in rows.items():
        frame = spark.createDataFrame(pa.Table.from_batches([batch(mine)]).to_pandas(), DDL)
        frame.createOrReplaceTempView(name)
    right = collected(spark.sql(RIGHT))
    assert len(right) > 200
    db = nm.connect(spark)
    for name in rows:
        db.create_stream(name, spark.table(name), time="ts")
    assert collected(db.sql(ASKED)) == right
    streams = {name: FileStream(tmp_path / name, DDL) for name in rows}
    db = nm.connect(spark)
    for name, stream in streams.items():
        db.create_stream(name, stream.read(spark), time="ts")
    for first in (0, 120):
        for name, stream in streams.items():
            last = [] if not first else [(10_000 * SECOND, 9, None)]
            stream.add(batch([*rows[name][first : first + 120], *last]))
        run_to_end(db.sql(ASKED), tmp_path)
    emitted = collected(spark.read.parquet(str(tmp_path / "out")))
    assert emitted == right
