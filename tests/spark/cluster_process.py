"""A join on executors of their own; one is killed: python -m tests.spark.cluster_process."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

import nilometer as nm
from tests.spark.harness import results, run_to_end
from tests.spark.test_streaming_features import batch, streams

KEYS = 20_000
BATCHES = 5


def kill_an_executor(after: Path) -> None:
    while not after.exists():
        time.sleep(0.05)
    children = psutil.Process().children(recursive=True)
    executors = [p for p in children if "CoarseGrainedExecutorBackend" in " ".join(p.cmdline())]
    executors[0].kill()


def main(folder: Path) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.executorEnv.PYTHONPATH", os.getcwd())
        .getOrCreate()
    )
    rows = [batch(*[(20 * b, i, 0, i) for i in range(KEYS)]) for b in range(BATCHES)]
    made = streams(folder, A=rows, B=rows)
    joined = nm.window_join(
        {name: stream.read(spark) for name, stream in made.items()},
        on="k",
        windows="25s",
        time="ts",
    )
    commit = folder / "checkpoint" / "commits" / "1"
    threading.Thread(target=kill_an_executor, args=(commit,), daemon=True).start()
    run_to_end(joined, folder)
    pairs = results(spark, folder, ["A.id", "B.id"])
    answer = {"results": len(pairs), "right": all(a == b for a, b in pairs)}
    (folder / "answer.json").write_text(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
