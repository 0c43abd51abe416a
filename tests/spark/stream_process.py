"""A streaming query in a process of its own, to be killed: python -m tests.spark.stream_process."""

from __future__ import annotations

import sys
from pathlib import Path

import nilometer as nm
from tests.spark.harness import run_to_end
from tests.spark.log_harness import open_logs, run_statement

DDL = "ts TIMESTAMP, k BIGINT, v BIGINT, id BIGINT"
STREAMS = ("A", "B", "C")
WINDOWS = {("A", "B"): "40us", ("B", "C"): "25us"}
LATENESS = "10us"
TWO_STAGES = (
    "SELECT A.id % 7 AS g, COUNT(*) AS n, SUM(B.id) AS s, MAX(B.id) AS m "
    "FROM A [RANGE 40 MICROSECONDS], B [RANGE 25 MICROSECONDS] WHERE A.k = B.k GROUP BY A.id % 7"
)
"""A join on one key under a GROUP BY on another."""
JOIN = (
    "SELECT A.id AS A, B.id AS B, C.id AS C FROM A, B, C "
    "WINDOW (A, B) = 40 MICROSECONDS AND WINDOW (B, C) = 25 MICROSECONDS "
    "WHERE A.k = B.k AND B.k = C.k"
)
LOG_WAYS = {"log": JOIN, "windowed log": TWO_STAGES}
ROWS = 60
"""Rows of a micro-batch that is read from a log."""


def main(way: str, folder: Path) -> None:
    spark = nm.local_spark(memory="1g")
    if way in LOG_WAYS:
        logs = open_logs(spark, folder, STREAMS, ROWS, reader="killed")
        run_statement(logs, LOG_WAYS[way], folder)
    else:
        reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
        frames = {name: reader.parquet(str(folder / name)) for name in STREAMS}
        if way == "windowed":
            db = nm.connect(spark)
            for name, frame in frames.items():
                db.create_stream(name, frame, time="ts", lateness=LATENESS)
            answer = db.sql(TWO_STAGES)
        else:
            answer = nm.window_join(frames, on="k", windows=WINDOWS, time="ts", lateness=LATENESS)
        run_to_end(answer, folder)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
