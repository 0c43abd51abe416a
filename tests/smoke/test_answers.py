"""Joins and windowed answers over DataFrames, static and streaming."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from sightings import DDL, JOIN, WINDOW, Row, counted, joined, sightings, write_files

import nilometer as nm

GROUPS = f"SELECT k, COUNT(*) AS n, SUM(id) AS s FROM A [RANGE {WINDOW} MICROSECONDS] GROUP BY k"
CHANGES = ("k", "n", "s", "unix_micros(_time) AS t", "_diff AS d")


@pytest.fixture
def rows(tmp_path: Path) -> dict[str, list[Row]]:
    made = {"A": sightings(1, 150), "B": sightings(2, 150)}
    for name, some in made.items():
        write_files(tmp_path / name, some, each=50)
    return made


def database(spark: SparkSession, folder: Path, streaming: bool) -> nm.Database:
    db = nm.connect(spark)
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
    for name in ("A", "B"):
        frame = reader.schema(DDL).parquet(str(folder / name))
        db.create_stream(name, frame, time="ts")
    return db


def to_the_end(frame: DataFrame, folder: Path) -> DataFrame:
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return frame.sparkSession.read.parquet(str(folder / "out"))


def pairs(frame: DataFrame) -> Counter[tuple[int, int]]:
    return Counter((row.a, row.b) for row in frame.collect())


def test_a_join_in_batch_and_streaming(
    spark: SparkSession, tmp_path: Path, rows: dict[str, list[Row]]
) -> None:
    wanted = joined(rows["A"], rows["B"])
    assert len(wanted) > 500
    assert pairs(database(spark, tmp_path, False).sql(JOIN)) == wanted
    streamed = database(spark, tmp_path, True).sql(JOIN)
    assert pairs(to_the_end(streamed, tmp_path / "streamed")) == wanted


def test_a_join_in_python_with_a_function(
    spark: SparkSession, tmp_path: Path, rows: dict[str, list[Row]]
) -> None:
    frames = {n: spark.read.schema(DDL).parquet(str(tmp_path / n)) for n in ("A", "B")}
    where = nm.predicate(lambda a, b: (a % 2 == 0) & (b > a), "A.id", "B.id")
    together = nm.window_join(frames, on="k", time="ts", windows=f"{WINDOW}us", where=where)
    wanted = Counter(
        {p: n for p, n in joined(rows["A"], rows["B"]).items() if p[0] % 2 == 0 and p[1] > p[0]}
    )
    assert pairs(together.selectExpr("A.id AS a", "B.id AS b")) == wanted


def test_a_windowed_answer_in_batch_and_streaming(
    spark: SparkSession, tmp_path: Path, rows: dict[str, list[Row]]
) -> None:
    changes = database(spark, tmp_path, False).sql(GROUPS)
    at = 333
    shown = nm.snapshot(changes, at=f"1970-01-01 00:00:00.000{at}")
    assert Counter((r.k, r.n, r.s) for r in shown.collect()) == counted(rows["A"], at)
    last = rows["A"][-1][0]
    wanted = Counter(tuple(r) for r in changes.selectExpr(*CHANGES).where(f"t < {last}").collect())
    streamed = to_the_end(database(spark, tmp_path, True).sql(GROUPS), tmp_path / "streamed")
    emitted = streamed.selectExpr(*CHANGES).where(f"t < {last}")
    assert Counter(tuple(row) for row in emitted.collect()) == wanted
    assert len(wanted) > 200
