"""Logs as sources and sinks: each row once, whatever is stopped, restarted or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from log_queries import MOST, WHOLE
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from sightings import SCHEMA, Row, joined, sightings, to_batch

import nilometer as nm
from nilometer.log.layout import LogLayout
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.spark.log_rows import register_log_sources

PATIENCE = 600


def append(location: Path, rows: Sequence[Row]) -> None:
    with LogWriter.open(location, LogLayout(SCHEMA, "ts")) as log:
        for first in range(0, len(rows), 10):
            some = rows[first : first + 10]
            log.append(to_batch(some), watermark=some[-1][0])


def contents(location: Path, *columns: str) -> Counter[tuple[int, ...]]:
    log = LogReader.open(location)
    counts: Counter[tuple[int, ...]] = Counter()
    for frame in log.read(log.start):
        values = [frame.rows.column(name).to_pylist() for name in columns]
        counts.update(zip(*values, strict=True))
    return counts


def start_copy(spark: SparkSession, folder: Path, reader: str | None, now: bool) -> StreamingQuery:
    options = {"path": str(folder / "A"), "startingOffsets": "earliest", "maxRowsPerTrigger": MOST}
    if reader is not None:
        options["reader"] = reader
    rows = spark.readStream.format("nilometer").options(**options).load()
    writer = (
        rows.writeStream.format("nilometer")
        .options(path=str(folder / "copy"), time="ts")
        .option("checkpointLocation", str(folder / "checkpoint"))
    )
    return (writer.trigger(availableNow=True) if now else writer).start()


def copy(spark: SparkSession, folder: Path, reader: str | None, now: bool) -> None:
    query = start_copy(spark, folder, reader, now)
    if now:
        query.awaitTermination()
    else:
        query.processAllAvailable()
        query.stop()


def test_a_log_is_read_once_however_often_its_reader_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    register_log_sources(spark)
    for reader, starts in ((None, (True, False, True)), ("named", (False, True))):
        folder = tmp_path / str(reader)
        rows: list[Row] = []
        for now in starts:
            rows += sightings(1, 100, len(rows))
            append(folder / "A", rows[-100:])
            copy(spark, folder, reader, now)
            assert contents(folder / "copy", "id") == Counter((n,) for n in range(len(rows)))
    old = spark.read.format("nilometer").option("path", str(tmp_path / "named" / "copy")).load()
    assert sorted(row.id for row in old.collect()) == list(range(200))


def test_micro_batches_are_limited(spark: SparkSession, tmp_path: Path) -> None:
    """From the second on everywhere: before Spark 4.2 a reader cannot limit the first."""
    register_log_sources(spark)
    append(tmp_path / "A", sightings(1, 20))
    query = start_copy(spark, tmp_path, None, now=False)
    try:
        query.processAllAvailable()
        append(tmp_path / "A", sightings(1, 5 * MOST, 20))
        query.processAllAvailable()
    finally:
        query.stop()
    sizes = [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]]
    assert sum(sizes) == 20 + 5 * MOST
    assert max(sizes) <= MOST


def start_child(folder: Path) -> subprocess.Popen[bytes]:
    with open(folder / "output.log", "ab") as output:
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("log_queries.py")), str(folder)],
            start_new_session=True,
            stdout=output,
            stderr=output,
            env={**os.environ, "NILOMETER_SPARK_LOG": str(folder / "spark.log")},
        )


def wait_for_batch(child: subprocess.Popen[bytes], checkpoint: Path, number: int) -> None:
    until = time.monotonic() + PATIENCE
    while not (checkpoint / "commits" / str(number)).exists():
        assert child.poll() is None, (checkpoint.parent / "output.log").read_text()
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_driver_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    rows = {name: sightings(seed, 600) for seed, name in enumerate("AB")}
    for name, some in rows.items():
        append(tmp_path / name, some[:40])
    child = start_child(tmp_path)
    for name in ("joining", "copying"):
        wait_for_batch(child, tmp_path / name, 0)
    for name, some in rows.items():
        append(tmp_path / name, some[40:])
    (tmp_path / WHOLE).touch()
    wait_for_batch(child, tmp_path / "joining", 3)
    assert child.poll() is None
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert sum(contents(tmp_path / "copied", "id").values()) < 600, "it was done already"
    child = start_child(tmp_path)
    assert child.wait(PATIENCE) == 0, (tmp_path / "output.log").read_text()
    assert contents(tmp_path / "joined", "a", "b") == joined(rows["A"], rows["B"])
    assert contents(tmp_path / "copied", "id") == Counter((n,) for n in range(600))


def test_a_sensor_database_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    results = 0
    for start in (
        lambda db: db.sql("CREATE QUERY q AS SELECT S.x FROM S WHERE S.x >= 0"),
        lambda db: db.resume(),
    ):
        with nm.connect(spark, path=tmp_path / "plant") as db:
            if not results:
                db.sql("CREATE STREAM S (x INT) FROM synthetic WITH (rate = 100)")
            start(db)
            until = time.monotonic() + PATIENCE
            while db.history("q").count() <= results + 50:
                assert time.monotonic() < until
                time.sleep(0.5)
            # Before what it is compared with, which grows meanwhile.
            counted = readings(db, "q")
            stored = readings(db, "S")
            results = counted.total()
            assert counted <= stored, "twice, or never stored"
            times = [at for _, at in counted]
            between = Counter(one for one in stored.elements() if min(times) < one[1] < max(times))
            assert between <= counted, "lost"


def readings(db: nm.Database, name: str) -> Counter[tuple[int, datetime]]:
    return Counter((row.x, row._time) for row in db.history(name).collect())
