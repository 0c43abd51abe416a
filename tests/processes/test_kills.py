"""kill -9 of the driver and of Python workers: the results are those of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nilometer.local.database import LocalDatabase
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import read_windows
from tests import oracle
from tests.cases import Row, to_batch
from tests.patience import LONG, wait_for
from tests.spark.log_harness import rows_of, write_log
from tests.spark.stream_process import LOG_WAYS, STREAMS, TWO_STAGES, WINDOWS


def generate(seed: int, batches: int, rows: int) -> list[list[list[Row]]]:
    """For each stream its micro-batches: out of order by less than ten microseconds."""
    rng = random.Random(seed)
    made = []
    for _ in STREAMS:
        stream: list[Row] = []
        for number in range(batches * rows):
            stream.append((number // 2 + rng.randrange(10), rng.randrange(9), 0, number))
        made.append([stream[i * rows : (i + 1) * rows] for i in range(batches)])
    return made


def lay_out(folder: Path, streams: Sequence[Sequence[Sequence[Row]]], way: str) -> None:
    for name, batches in zip(STREAMS, streams, strict=True):
        if way in LOG_WAYS:
            write_log(folder / name, batches)
            continue
        (folder / name).mkdir(parents=True)
        for number, rows in enumerate(batches):
            file = folder / name / f"{number:04d}.parquet"
            pq.write_table(pa.Table.from_batches([to_batch(rows)]), file)
            os.utime(file, (1_600_000_000 + number,) * 2)


class Run:
    """The streaming query in its own process group."""

    def __init__(self, way: str, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "output.log"
        with open(self.output, "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.stream_process", way, str(folder)],
                start_new_session=True,
                stdout=output,
                stderr=output,
                env={**os.environ, "NILOMETER_SPARK_LOG": str(folder / "spark.log")},
            )

    def wait_for_batch(self, number: int) -> None:
        commit = self.folder / "checkpoint" / "commits" / str(number)
        wait_for(commit.exists, said=self.log, alive=lambda: self.process.poll() is None)

    def kill_driver(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_workers(self) -> int:
        """Kill the Python workers, which are forked by Spark's daemons: these the server forks."""
        (server,) = filter(_is_fork_server, psutil.Process(self.process.pid).children())
        workers = [worker for daemon in server.children() for worker in daemon.children()]
        for worker in workers:
            worker.kill()
        return len(workers)

    def finish(self) -> None:
        assert self.process.wait(timeout=LONG) == 0, self.log()
        assert self.output.read_text() == "", "a query prints nothing"

    def log(self) -> str:
        file = self.folder / "spark.log"
        return file.read_text()[-3000:] if file.exists() else "no log"


def _is_fork_server(process: psutil.Process) -> bool:
    return "nilometer.spark.fork_server" in process.cmdline()


def results_of(way: str, folder: Path, spark: SparkSession) -> list[tuple[int, ...]]:
    if way == "log":
        rows = rows_of(folder / "out", STREAMS)
    elif way == "windowed log":
        rows = rows_of(folder / "out", ("g", "n", "s", "m", "_time", "_diff"))
    elif way == "windowed":
        frame = spark.read.parquet(str(folder / "out"))
        columns = ("g", "n", "s", "m", "unix_micros(_time)", "_diff")
        rows = [tuple(r) for r in frame.selectExpr(*columns).collect()]
    else:
        frame = spark.read.parquet(str(folder / "out"))
        rows = [tuple(r) for r in frame.selectExpr(*(f"{n}.id" for n in STREAMS)).collect()]
    return sorted(rows)


def check(way: str, folder: Path, spark: SparkSession, kills: Sequence[str], seed: int) -> None:
    batches = 3 + 3 * len(kills)
    streams = generate(seed, batches, rows=60)
    lay_out(folder, streams, way)
    run = Run(way, folder)
    try:
        for number, victim in enumerate(kills):
            run.wait_for_batch(3 * number + 1)
            time.sleep(random.Random(seed + number).random() * 0.5)
            if victim == "driver":
                run.kill_driver()
                run = Run(way, folder)
            else:
                assert run.kill_workers() > 0
        run.finish()
    finally:
        run.kill_driver()
    expected = expect(way, [list(chain(*stream)) for stream in streams])
    assert len(expected) > 1000
    assert results_of(way, folder, spark) == expected


def expect(way: str, streams: Sequence[Sequence[Row]]) -> list[tuple[int, ...]]:
    """What an undisturbed run would give."""
    if not way.startswith("windowed"):
        return oracle.window_join(streams, TimeNetwork(STREAMS, read_windows(WINDOWS)))
    db = LocalDatabase()
    for name, rows in zip(STREAMS, streams, strict=True):
        db.create_stream(name, pa.Table.from_batches([to_batch(rows)]), time="ts")
    frontier = min(max(row[0] for row in rows) for rows in streams[:2]) - 10
    changes = db.sql(TWO_STAGES)
    times = changes.column("_time").cast(pa.int64())
    changes = changes.set_column(changes.num_columns - 2, "_time", times)
    rows = zip(*(column.to_pylist() for column in changes.columns), strict=True)
    return sorted(row for row in rows if row[-2] < frontier)


@pytest.mark.soak
def test_a_kill_of_workers_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    check("rows", tmp_path, spark, ["workers"], seed=1)


def test_a_kill_of_the_driver_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    check("windowed log", tmp_path, spark, ["driver"], seed=3)


@pytest.mark.soak
@pytest.mark.limit(1200)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("way", ["rows", "windowed", *LOG_WAYS])
def test_many_kills_change_nothing(
    way: str, seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    victims = random.Random(seed).choices(["driver", "workers"], k=4)
    check(way, tmp_path, spark, victims, seed)
