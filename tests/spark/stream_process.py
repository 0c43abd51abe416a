"""A streaming join in a process of its own, to be killed: python -m tests.spark.stream_process."""

from __future__ import annotations

import sys
from pathlib import Path

import nilometer as nm
from nilometer.spark.columnar import join_arrow_files
from nilometer.spark.query import JoinOptions
from tests.spark.conftest import QUICK_TO_START

DDL = "ts TIMESTAMP, k BIGINT, v BIGINT, id BIGINT"
STREAMS = ("A", "B", "C")
WINDOWS = {("A", "B"): "40us", ("B", "C"): "25us"}
LATENESS = "10us"


def main(way: str, folder: Path) -> None:
    spark = nm.local_spark(memory="1g", config={"spark.driver.extraJavaOptions": QUICK_TO_START})
    if way == "columnar":
        options = JoinOptions(WINDOWS, on="k", time="ts", lateness=LATENESS)
        join = join_arrow_files(
            spark, {name: folder / name for name in STREAMS}, options, files_per_batch=1
        )
        query = join.start(folder / "out", folder / "checkpoint", available_now=True)
    else:
        reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
        joined = nm.window_join(
            {name: reader.parquet(str(folder / name)) for name in STREAMS},
            on="k",
            windows=WINDOWS,
            time="ts",
            lateness=LATENESS,
        )
        query = (
            joined.writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
