"""`nilometer demo`: four cameras, moving objects, two queries on Spark, checked at the end."""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console

import nilometer as nm
from nilometer.apps.cameras.display import Checks, Screen, show_summary
from nilometer.apps.cameras.on_the_way import EVERY, WINDOW, OnTheWay
from nilometer.apps.cameras.on_the_way import statement as on_the_way_statement
from nilometer.apps.cameras.source import CameraSource
from nilometer.apps.cameras.tally import Tally
from nilometer.apps.cameras.world import CAMERAS, SECOND, World

LONGEST_LEG: Final = 3 * SECOND
_LOOK_EVERY: Final = 0.25
_COUNT_EVERY: Final = "1 second"


def run_demo(seconds: int, rate: int, console: Console) -> bool:
    """Show the demo; True if every track was found, once, no other, and all counts are right."""
    starting = "Starting Spark (some ten seconds)"
    if not console.is_terminal:
        console.print(starting)
    with console.status(starting):
        spark = nm.local_spark(name="nilometer demo")
    try:
        with tempfile.TemporaryDirectory(prefix="nilometer-demo-") as folder:
            world = World(time.time_ns() // 1000, rate)
            tally, on_the_way = Tally(CAMERAS), OnTheWay()
            for text in (statement(), on_the_way_statement()):
                console.print(f"{text}\n", style="cyan", soft_wrap=True)
            tracks, counts = _prepare(spark, world, seconds, Path(folder), on_the_way)
            _watch(tracks, counts, seconds, Screen(console, seconds, tally, on_the_way))
            with console.status("Checking every track and every count against the true ones"):
                checks = _check(world, seconds, Path(folder), on_the_way)
            show_summary(console, tally, seconds, on_the_way, checks)
            return checks.all_right
    finally:
        spark.stop()


def statement() -> str:
    """Objects that pass all four cameras in order, at most three seconds for each leg."""
    seconds = LONGEST_LEG // SECOND
    legs = list(pairwise(CAMERAS))
    times = ",\n       ".join(f"unix_micros({name}.ts) AS {name}" for name in CAMERAS)
    windows = "\n   AND ".join(f"DWINDOW({a}, {b}) = {seconds} SECONDS" for a, b in legs)
    keys = "\n   AND ".join(f"{a}.obj_id = {b}.obj_id" for a, b in legs)
    return (
        f"SELECT {CAMERAS[0]}.obj_id,\n       {times}\n"
        f"FROM   {', '.join(CAMERAS)}\n"
        f"{windows}\n"
        f"WHERE  {keys}"
    )


def watch_cameras(spark: SparkSession, world: World, seconds: int) -> nm.Database:
    """A database with the live cameras as streams."""
    spark.dataSource.register(CameraSource)
    db = nm.connect(spark)
    for number, name in enumerate(CAMERAS):
        frames = spark.readStream.format("nilometer-camera").options(
            camera=number, started=world.started, rate=world.rate, seconds=seconds
        )
        db.create_stream(name, frames.load(), time="ts", lateness="400ms", rate=world.rate)
    return db


def _prepare(
    spark: SparkSession, world: World, seconds: int, folder: Path, on_the_way: OnTheWay
) -> tuple[DataStreamWriter, DataStreamWriter]:
    """The query for tracks, and that for objects on their way."""
    db = watch_cameras(spark, world, seconds)
    tracks = db.sql(statement()).writeStream.option(
        "checkpointLocation", str(folder / "tracks-checkpoint")
    )
    counts = db.sql(on_the_way_statement()).writeStream.option(
        "checkpointLocation", str(folder / "counts-checkpoint")
    )
    return (
        tracks.format("parquet").option("path", str(folder / "tracks")),
        counts.foreachBatch(on_the_way).trigger(processingTime=_COUNT_EVERY),
    )


def _watch(
    tracks: DataStreamWriter, counts: DataStreamWriter, seconds: int, screen: Screen
) -> None:
    """Run both queries; the second starts once Spark is warm, and catches up."""
    started = time.monotonic()
    queries = [tracks.start()]
    with screen:
        while (passed := time.monotonic() - started) < seconds:
            screen.update(passed, queries[0].recentProgress)
            if any(query.exception() is not None for query in queries):
                break
            if len(queries) == 1 and queries[0].lastProgress is not None:
                queries.append(counts.start())
            time.sleep(_LOOK_EVERY)
        if len(queries) == 1:
            queries.append(counts.start())
        for query in queries:
            screen.update(seconds, queries[0].recentProgress)
            query.processAllAvailable()
        screen.update(seconds, queries[0].recentProgress)
    for query in queries:
        query.stop()


def _check(world: World, seconds: int, folder: Path, on_the_way: OnTheWay) -> Checks:
    """What was found against what is true."""
    tracks = world.tracks(seconds * SECOND, LONGEST_LEG)
    counts = world.on_the_way(seconds * SECOND, WINDOW, EVERY)
    return Checks(
        len(tracks),
        sorted(_read_tracks(folder / "tracks")) == sorted(tracks),
        sum(map(len, counts.values())),
        on_the_way.is_right(counts),
    )


def _read_tracks(folder: Path) -> list[tuple[int, ...]]:
    columns = ["obj_id", *CAMERAS]
    tracks: list[tuple[int, ...]] = []
    for file in folder.glob("*.parquet"):
        values = pq.read_table(file, columns=columns).to_pydict()
        tracks.extend(zip(*(values[column] for column in columns), strict=True))
    return tracks
