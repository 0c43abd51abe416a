"""Logs on a cluster whose executors do not share the driver's /tmp; says what happened in JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.log.reader import LogReader
from nilometer.spark.log_rows import register_log_sources
from tests.patience import wait_for

ROWS = 4000
FILES = 4


def write_input(folder: Path) -> None:
    folder.mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        keys = pa.array(range(number * each, (number + 1) * each), pa.int64())
        pq.write_table(pa.table({"k": keys}), folder / f"{number}.parquet")


def write_log(spark: SparkSession, given: Path, log: str, checkpoint: Path) -> str | None:
    """Write all rows of the input to a log; the error, or None."""
    rows = spark.readStream.schema("k BIGINT").option("maxFilesPerTrigger", 2)
    written = rows.parquet(str(given)).repartition(4).writeStream.format("nilometer")
    try:
        query = written.option("path", log).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        return str(error)
    return None


def rows_in(log: str) -> list[int]:
    reader = LogReader.open(log)
    return sorted(k for one in reader.read(reader.start) for k in one.rows["k"].to_pylist())


def run_query(spark: SparkSession, folder: Path, plant: str) -> Any:
    """The answer of a query of a database at a place, or why it did not start."""
    lines = [json.dumps({"k": k, "ts": 1_770_000_000 + k}) for k in range(40)]
    (folder / "a.jsonl").write_text("\n".join(lines))
    with nm.connect(spark, path=plant) as db:
        db.sql(
            "CREATE STREAM A (k INT, ts BIGINT, HISTORY FOREVER) FROM file "
            f"WITH (address = '{folder}/a.jsonl', speed = 'max')"
        )
        try:
            db.sql("CREATE QUERY evens AS SELECT k FROM A WHERE k % 2 = 0")
        except nm.NilometerError as error:
            return str(error)
        wait_for(lambda: db.history("evens").count() == 20)
        return sorted(row["k"] for row in db.history("evens").collect())


def main(url: str, shared: Path, alone: Path) -> None:
    spark = (
        SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executor.memory", "512m")
        # Both executors have the same host, but not the same disk.
        .config("spark.shuffle.readHostLocalDisk", "false")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    register_log_sources(spark)
    write_input(shared / "input")
    lost, kept = str(alone / "log"), str(shared / "log")
    answer = {
        "refused": write_log(spark, shared / "input", lost, shared / "checkpoint1"),
        "lost": rows_in(lost),
        "kept": [
            write_log(spark, shared / "input", kept, shared / "checkpoint2"),
            rows_in(kept) == list(range(ROWS)),
        ],
        "query refused": run_query(spark, shared, str(alone / "plant")),
        "query": run_query(spark, shared, str(shared / "plant")),
    }
    (shared / "answer.json").write_text(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
