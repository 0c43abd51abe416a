"""OVER on Spark: what Spark itself says of a batch, also streamed across a restart."""

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
DDL = "ts TIMESTAMP, k INT, v DOUBLE, s STRING"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int32()),
        ("v", pa.float64()),
        ("s", pa.string()),
    ]
)
STATEMENT = (
    "SELECT ts, upper(s) AS u, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS before, "
    "v - LAG(v, 1, 0D) OVER (PARTITION BY k ORDER BY ts) AS step, "
    "ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n, "
    "AVG(v) OVER (PARTITION BY s ORDER BY ts RANGE BETWEEN INTERVAL '5' SECONDS PRECEDING "
    "AND CURRENT ROW) AS mean, SUM(v) OVER w AS total, LAST_VALUE(v) IGNORE NULLS OVER w AS known "
    "FROM S WHERE lower(s) <> 'c' WINDOW w AS (PARTITION BY k ORDER BY ts)"
)
COLUMNS = ("ts", "u", "before", "step", "n", "mean", "total", "known")


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def collected(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    rows = frame.select(*COLUMNS).collect()
    return Counter(
        tuple(round(one, 9) if isinstance(one, float) else one for one in row) for row in rows
    )


def test_what_is_said_of_rows_is_what_spark_says(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(8)
    times = sorted(random.sample(range(2000), 300))
    rows = [
        (
            time * SECOND // 10,
            random.randrange(3),
            random.choice([None, random.randrange(8) / 8]),
            random.choice(["a", "b", "c"]),
        )
        for time in times
    ]
    frame = spark.createDataFrame(pa.Table.from_batches([batch(rows)]).to_pandas(), DDL)
    frame.createOrReplaceTempView("S")
    right = collected(spark.sql(STATEMENT))
    db = nm.connect(spark)
    db.create_stream("S", frame, time="ts")
    assert collected(db.sql(STATEMENT)) == right
    stream = FileStream(tmp_path / "S", DDL)
    db = nm.connect(spark)
    db.create_stream("S", stream.read(spark), time="ts", lateness="1s")
    for first in (0, 100):
        stream.add(batch(rows[first : first + 100]))
        run_to_end(db.sql(STATEMENT), tmp_path)
    stream.add(batch([*rows[200:], (10_000 * SECOND, 9, None, "c")]))
    run_to_end(db.sql(STATEMENT), tmp_path)
    assert collected(spark.read.parquet(str(tmp_path / "out"))) == right


def test_rows_of_a_table_are_ranked_as_spark_ranks_them(spark: SparkSession) -> None:
    random = Random(9)
    rows = [
        (number, random.randrange(4), random.choice([None, 0.5, 1.5, 2.5]), random.choice("abc"))
        for number in range(60)
    ]
    frame = spark.createDataFrame(rows, "id INT, k INT, v DOUBLE, s STRING")
    frame.createOrReplaceTempView("T")
    statement = (
        "SELECT id, upper(s) AS u, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS a, NTILE(7) "
        "OVER (ORDER BY v, id) AS b, CUME_DIST() OVER (PARTITION BY s ORDER BY v) AS c, SUM(v) "
        "OVER (PARTITION BY k) AS d, LEAD(s) OVER (ORDER BY id) AS e FROM T WHERE lower(s) <> 'c'"
    )
    columns = ("id", "u", "a", "b", "c", "d", "e")
    right = Counter(map(tuple, spark.sql(statement).select(*columns).collect()))
    db = nm.connect(spark)
    db.create_table("T", frame)
    assert Counter(map(tuple, db.sql(statement).select(*columns).collect())) == right
