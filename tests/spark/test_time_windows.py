"""Windows of time on Spark: beside Spark's own, over files and over logs, across restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import nilometer as nm
from tests.cases import Row
from tests.patience import wait_for
from tests.spark.harness import FileStream, run_to_end
from tests.spark.log_harness import open_logs, rows_of, run_statement, write_log

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
TUMBLING = (
    "SELECT window.start AS b, window.end AS e, k, COUNT(*) AS n, SUM(v) AS t, MAX(s) AS m "
    "FROM S WHERE upper(s) <> 'C' GROUP BY window(ts, '10 seconds'), k"
)
HOPPING = (
    "SELECT window_start AS b, window_end AS e, upper(s) AS u, COUNT(DISTINCT k) AS n, "
    "MIN(v) AS t FROM HOP(TABLE S, DESCRIPTOR(ts), INTERVAL '4' SECONDS, INTERVAL '10' SECONDS) "
    "GROUP BY window_start, window_end, upper(s)"
)
SESSIONS = (
    "SELECT session_window.start AS b, session_window.end AS e, k, COUNT(*) AS n, AVG(v) AS t "
    "FROM S WHERE v > 0.1 GROUP BY session_window(ts, '2 seconds'), k"
)
BY_MINUTE = (
    "SELECT date_trunc('MINUTE', ts) AS b, s, COUNT(*) AS n, AVG(v) AS t "
    "FROM S GROUP BY date_trunc('MINUTE', ts), s"
)
COLUMNS = {
    TUMBLING: ("b", "e", "k", "n", "t", "m"),
    HOPPING: ("b", "e", "u", "n", "t"),
    SESSIONS: ("b", "e", "k", "n", "t"),
    BY_MINUTE: ("b", "s", "n", "t"),
}


def spark_itself(rows: DataFrame, statement: str) -> DataFrame:
    """What Spark's own windows say."""
    bounds = (sql.col("w.start").alias("b"), sql.col("w.end").alias("e"))
    if statement == TUMBLING:
        kept = rows.where("upper(s) <> 'C'").groupBy(sql.window("ts", "10 seconds").alias("w"), "k")
        answer = kept.agg(
            sql.count("*").alias("n"), sql.sum("v").alias("t"), sql.max("s").alias("m")
        )
        return answer.select(*bounds, "k", "n", "t", "m")
    if statement == HOPPING:
        window = sql.window("ts", "10 seconds", "4 seconds").alias("w")
        grouped = rows.groupBy(window, sql.upper("s").alias("u"))
        answer = grouped.agg(sql.countDistinct("k").alias("n"), sql.min("v").alias("t"))
        return answer.select(*bounds, "u", "n", "t")
    if statement == SESSIONS:
        grouped = rows.where("v > 0.1").groupBy(
            sql.session_window("ts", "2 seconds").alias("w"), "k"
        )
        answer = grouped.agg(sql.count("*").alias("n"), sql.avg("v").alias("t"))
        return answer.select(*bounds, "k", "n", "t")
    grouped = rows.groupBy(sql.date_trunc("MINUTE", "ts").alias("b"), "s")
    return grouped.agg(sql.count("*").alias("n"), sql.avg("v").alias("t"))


def generate(seed: int, count: int) -> list[tuple[Any, ...]]:
    random = Random(seed)
    times = sorted(random.randrange(-60, 240) * 500_000 for _ in range(count))
    return [
        (
            time,
            random.choice([None, 0, 1, 2]),
            random.choice([None, random.randrange(8) / 8]),
            random.choice([None, "a", "b", "c"]),
        )
        for time in times
    ]


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def collected(frame: DataFrame, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.select(*columns).collect())


@pytest.mark.parametrize("statement", list(COLUMNS), ids=["tumble", "hop", "session", "minute"])
def test_windows_are_those_of_spark(statement: str, spark: SparkSession, tmp_path: Path) -> None:
    """All at once, and streamed in micro-batches with a restart; a last row ends all windows."""
    rows = generate(3, 400)
    frame = spark.createDataFrame(pa.Table.from_batches([batch(rows)]).to_pandas(), DDL)
    right = collected(spark_itself(frame, statement), COLUMNS[statement])
    db = nm.connect(spark)
    db.create_stream("S", frame, time="ts")
    assert collected(db.sql(statement), COLUMNS[statement]) == right
    stream = FileStream(tmp_path / "S", DDL)
    db = nm.connect(spark)
    db.create_stream("S", stream.read(spark), time="ts", lateness="1s")
    for first in (0, 150):
        stream.add(batch(rows[first : first + 150]))
        run_to_end(db.sql(statement), tmp_path)
    stream.add(batch([*rows[300:], (10_000 * SECOND, None, None, None)]))
    run_to_end(db.sql(statement), tmp_path)
    assert collected(spark.read.parquet(str(tmp_path / "out")), COLUMNS[statement]) == right


def test_functions_of_spark_stand_beside_static_tables(spark: SparkSession, tmp_path: Path) -> None:
    rows = generate(4, 100)
    table = spark.createDataFrame([(0, "x"), (1, "y"), (1, "z")], "k INT, name STRING")
    frame = spark.createDataFrame(pa.Table.from_batches([batch(rows)]).to_pandas(), DDL)
    statement = (
        "SELECT x.u, x.m, T.name FROM (SELECT upper(s) AS u, date_format(ts, 'HH:mm') AS m, k "
        "FROM S WHERE lower(s) IN ('a', 'b')) x LEFT JOIN T ON x.k = T.k"
    )
    table.createOrReplaceTempView("T")
    frame.createOrReplaceTempView("S")
    right = collected(spark.sql(statement), ("u", "m", "name"))
    stream = FileStream(tmp_path / "S", DDL)
    stream.add(batch(rows))
    stream.add(batch([(10_000 * SECOND, None, None, None)]))
    for given in (frame, stream.read(spark)):
        db = nm.connect(spark)
        db.create_stream("S", given, time="ts")
        db.create_table("T", table)
        answer = db.sql(statement)
        if given.isStreaming:
            run_to_end(answer, tmp_path)
            answer = spark.read.parquet(str(tmp_path / "out"))
        assert collected(answer, ("u", "m", "name")) == right


def test_windows_of_logs_are_logs(spark: SparkSession, tmp_path: Path) -> None:
    """The answers of windows are appended to a log, which is a stream of other queries."""
    random = Random(5)
    rows: list[Row] = sorted(
        (random.randrange(900), random.randrange(3), random.randrange(9), number)
        for number in range(300)
    )
    write_log(tmp_path / "S", [rows[:150]])
    logs = open_logs(spark, tmp_path, ["S"])
    statement = "SELECT k, COUNT(*) AS n FROM TUMBLE(S, 1 MILLISECOND) GROUP BY k"
    run_statement(logs, statement, tmp_path / "counts")
    write_log(tmp_path / "S", [rows[150:], [(10_000, None, None, None)]], largest=rows[149][0])
    run_statement(logs, statement, tmp_path / "counts")
    counted = Counter(row[1] for row in rows)
    counts = rows_of(tmp_path / "counts" / "out", ("k", "n", "_time"))
    assert counts == sorted(((k, n, 1000) for k, n in counted.items()), key=repr)


def test_windows_of_named_queries(spark: SparkSession, tmp_path: Path) -> None:
    """A query per window, appended, and another that reads it as a stream."""
    day = "2026-01-31 12:0"
    lines = [f"{i % 2},{i},{day}{i // 60}:{i % 60:02d}" for i in range(300)]
    (tmp_path / "a.csv").write_text("k,v,at\n" + "\n".join(lines) + "\n")
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.sql(
            "CREATE STREAM A (k INT, v INT, at TIMESTAMP, TIME at) "
            f"FROM file WITH (address = '{tmp_path}/a.csv', speed = 'max')"
        )
        db.sql(
            "CREATE QUERY minutes AS SELECT k, window_end, SUM(v) AS s FROM TUMBLE(A, 1 MINUTE) "
            "GROUP BY k, window_end FROM START"
        )
        db.sql("CREATE QUERY most AS SELECT MAX(s) AS m FROM minutes [ROWS 4] FROM START")
        sums = {
            (k, minute): sum(i for i in range(60 * minute, 60 * minute + 60) if i % 2 == k)
            for minute in range(4)
            for k in (0, 1)
        }
        minutes = db.log_of("minutes")
        wait_for(lambda: len(rows_of(minutes, ["s"])) >= len(sums))
        start = 1_769_860_800 * SECOND
        counts = {
            (k, (end - start) // (60 * SECOND) - 1): total
            for k, end, total in rows_of(minutes, ["k", "window_end", "s"])
        }
        assert {key: counts.get(key) for key in sums} == sums
        most = db.log_of("most")
        wait_for(lambda: (max(sums.values()),) in rows_of(most, ["m"]))
