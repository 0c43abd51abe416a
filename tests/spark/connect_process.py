"""A join and a kept answer over Spark Connect: python -m tests.spark.connect_process FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import nilometer as nm
from tests.spark.harness import FileStream, run_to_end
from tests.spark.test_snapshot import DDL, Change, to_batch
from tests.spark.test_streaming_features import batch, streams

CHANGES: list[list[Change]] = [
    [(1, 0.5, 0, 2)],
    [(1, 0.5, 1_000_000, -1), (4, 4.0, 2_000_000, 1)],
]


def main(folder: Path) -> None:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.remote("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    assert "connect" in type(spark).__module__
    made = streams(
        folder,
        A=[batch((0, 1, 0, 0), (1, 2, 0, 1)), batch((20, 1, 0, 2))],
        B=[batch((2, 1, 0, 0)), batch((21, 1, 0, 1), (1, 1, 0, 2))],
    )
    joined = nm.window_join(
        {name: stream.read(spark) for name, stream in made.items()},
        on="k",
        windows="5s",
        time="ts",
        where="A.id <= B.id + 1",
    )
    query = run_to_end(joined, folder)
    [metrics] = nm.metrics(query)
    rows = spark.read.parquet(str(folder / "out")).selectExpr("A.id AS a", "B.id AS b").collect()
    table = spark.createDataFrame([(1, 1)], "k BIGINT, id INT").selectExpr(
        "k", "id", "timestamp'2026-01-01' AS ts"
    )
    by_batch = nm.window_join({"X": table, "Y": table}, on="k", windows="1s", time="ts").count()
    db = nm.connect(spark)
    db.create_stream("S", table, time="ts")
    db.create_table("T", spark.createDataFrame([(1, "one")], "k BIGINT, label STRING"))
    db.create_function("near", lambda a, b: (a - b).abs() < 2)
    by_sql = db.sql(
        "SELECT upper(label) AS l, near(X.id, X.id) AS n FROM S X, S Y [ROWS 1], T "
        "WINDOW = 1 S WHERE X.k = Y.k AND T.k = X.k AND near(X.id, Y.id)"
    ).collect()
    refused = ""
    try:
        db.sql("SELECT nosuch(X.id) FROM S X")
    except nm.NilometerError as error:
        refused = error.message
    answer = {
        "sql": [[row.l, row.n] for row in by_sql],
        "refused": refused,
        "streamed": sorted([r.a, r.b] for r in rows),
        "late": {name: stream.late for name, stream in metrics.streams.items()},
        "batch": by_batch,
    }
    (folder / "answer.json").write_text(json.dumps(answer | keep_answer(spark, folder)))
    spark.stop()


def keep_answer(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What is read of an answer that is kept."""
    stream = FileStream(folder / "changes", DDL)
    for one in CHANGES:
        stream.add(to_batch(one))
    path = folder / "answer"
    for _ in range(2):
        query = nm.keep_answer(stream.read(spark), path, trigger={"availableNow": True})
        query.awaitTermination()
    rows, time = nm.read_answer(spark, path)
    changelog = spark.read.schema(DDL).parquet(str(folder / "changes"))
    first = nm.snapshot(changelog, "1970-01-01 00:00:00.9")
    missing = ""
    try:
        nm.read_answer(spark, "nowhere")
    except nm.NilometerError as error:
        missing = error.message.replace(f"{Path.cwd()}/", "")
    return {
        "snapshot": sorted(list(row) for row in first.collect()),
        "kept": sorted(list(row) for row in rows.collect()),
        "time": None if time is None else time.isoformat(),
        "missing": missing,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
