"""Streaming queries over micro-batches that a test chooses: a file per stream and batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


class FileStream:
    """A stream whose n-th micro-batch is its n-th file."""

    def __init__(self, folder: Path, schema: str) -> None:
        self.folder = folder
        self.schema = schema
        self._files = 0
        folder.mkdir(parents=True)

    def add(self, rows: pa.RecordBatch) -> None:
        """Let a micro-batch of these rows come after those that are there."""
        file = self.folder / f"{self._files:05d}.parquet"
        hidden = self.folder / f".{file.name}"
        pq.write_table(pa.Table.from_batches([rows]), hidden)
        os.utime(hidden, (1_600_000_000 + self._files,) * 2)  # Spark reads the oldest first
        hidden.rename(file)
        self._files += 1

    def read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


def run_to_end(frame: DataFrame, folder: Path, **options: str) -> StreamingQuery:
    """Run a streaming query over all that is there; its results go to folder/out."""
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def results(spark: SparkSession, folder: Path, columns: Sequence[str]) -> list[tuple[int, ...]]:
    """What the query of `run_to_end` has written, sorted."""
    rows = spark.read.parquet(str(folder / "out")).selectExpr(*columns).collect()
    return sorted(tuple(row) for row in rows)
