"""Makes an archive of the classes that Spark loads: Java starts it with half the work.

`python -m nilometer.spark.class_archive` makes it for this Java and this Spark, in the environment
of this Python; sessions use it from then on.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from nilometer.errors import NilometerError, SessionError
from nilometer.spark.java import class_archive, making_options, require_java
from nilometer.spark.session import JAVA_OPTIONS, local_spark
from nilometer.spark.window_join import window_join


def make_archive() -> Path:
    """Make the archive in a session that runs the usual kinds of queries; returns its file."""
    file = class_archive(require_java())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            made = Path(folder, file.name)
            options = JAVA_OPTIONS + making_options(made)
            session = local_spark(cores=2, config={"spark.driver.extraJavaOptions": options})
            _run_queries(session, Path(folder))
            _end_java(session)
            made.replace(file)
    except FileNotFoundError as error:
        raise SessionError(
            "this Java makes no archive of classes", detail=f"{file} is not there"
        ) from error
    except OSError as error:
        raise SessionError("the archive of classes cannot be stored", detail=str(error)) from error
    return file


def _run_queries(session: SparkSession, folder: Path) -> None:
    """Load what most sessions load: a batch, a join of streams, and Python on executors."""
    rows = [{"k": n % 3, "v": n, "ts": f"2026-01-01 00:00:{n:02}"} for n in range(20)]
    (folder / "in").mkdir()
    (folder / "in" / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    schema = "k BIGINT, v BIGINT, ts TIMESTAMP"
    stored = session.read.schema(schema).json(str(folder / "in"))
    stored.groupBy("k").count().orderBy("k").toPandas()
    stored.write.parquet(str(folder / "parquet"))
    session.read.parquet(str(folder / "parquet")).collect()
    stream = session.readStream.schema(schema).json(str(folder / "in"))
    joined = window_join({"A": stream, "B": stream}, on="k", windows="5s", time="ts")
    output: Any = joined.writeStream.format("json").option("path", str(folder / "out"))
    output = output.option("checkpointLocation", str(folder / "checkpoint"))
    output.trigger(availableNow=True).start().awaitTermination()


def _end_java(session: SparkSession) -> None:
    """End the session and Java, which stores the archive before it is gone."""
    session.stop()
    gateway: Any = SparkContext._gateway
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    try:
        made = make_archive()
    except NilometerError as error:
        raise SystemExit(f"error: {error}") from None
    sys.stdout.write(f"{made}: {made.stat().st_size >> 20} MB\n")
