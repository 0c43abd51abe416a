"""A kept answer over Spark Connect: python -m tests.spark.connect_answer_process FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import nilometer as nm
from tests.spark.harness import FileStream
from tests.spark.test_snapshot import DDL, Change, to_batch

BATCHES: list[list[Change]] = [
    [(1, 0.5, 0, 2)],
    [(1, 0.5, 1_000_000, -1), (4, 4.0, 2_000_000, 1)],
]


def main(folder: Path) -> None:
    builder = SparkSession.builder.remote("local[2]")
    for key in ("spark.sql.shuffle.partitions", "spark.ui.enabled"):
        builder = builder.config(key, "false" if key.endswith("enabled") else "2")
    spark = builder.getOrCreate()
    assert "connect" in type(spark).__module__
    stream = FileStream(folder / "changes", DDL)
    for batch in BATCHES:
        stream.add(to_batch(batch))
    path = folder / "answer"
    for _ in range(2):
        query = nm.keep_answer(stream.read(spark), path, trigger={"availableNow": True})
        query.awaitTermination()
    rows, time = nm.read_answer(spark, path)
    changelog = spark.read.schema(DDL).parquet(str(folder / "changes"))
    first = nm.snapshot(changelog, "1970-01-01 00:00:00.9")
    refused = ""
    try:
        nm.read_answer(spark, "nowhere")
    except nm.NilometerError as error:
        refused = error.message.replace(f"{Path.cwd()}/", "")
    answer = {
        "snapshot": sorted(list(row) for row in first.collect()),
        "kept": sorted(list(row) for row in rows.collect()),
        "time": None if time is None else time.isoformat(),
        "refused": refused,
    }
    (folder / "answer.json").write_text(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
