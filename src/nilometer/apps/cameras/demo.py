"""`nilometer demo`: four cameras, moving objects, one window join on Spark, checked at the end."""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

import nilometer as nm
from nilometer.apps.cameras.display import Screen, show_summary
from nilometer.apps.cameras.source import CameraSource
from nilometer.apps.cameras.tally import Tally
from nilometer.apps.cameras.world import CAMERAS, SECOND, World

LONGEST_LEG: Final = 3 * SECOND
_LOOK_EVERY: Final = 0.25


def run_demo(seconds: int, rate: int, console: Console) -> bool:
    """Show the demo; True if every track was found, once, and no other."""
    starting = "Starting Spark (some ten seconds)"
    if not console.is_terminal:
        console.print(starting)
    with console.status(starting):
        spark = nm.local_spark(name="nilometer demo")
    try:
        with tempfile.TemporaryDirectory(prefix="nilometer-demo-") as folder:
            world = World(time.time_ns() // 1000, rate)
            tally = Tally(CAMERAS)
            console.print(statement(), style="cyan", soft_wrap=True)
            query = _start(spark, world, seconds, Path(folder))
            _watch(query, seconds, tally, console)
            with console.status("Checking every track against the true ones"):
                found = _read_tracks(Path(folder, "tracks"))
                expected = world.tracks(seconds * SECOND, LONGEST_LEG)
            right = sorted(found) == sorted(expected)
            show_summary(console, tally, seconds, len(expected), right)
            return right
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


def track(spark: SparkSession, world: World, seconds: int) -> DataFrame:
    """The answer to the statement over live cameras."""
    spark.dataSource.register(CameraSource)
    db = nm.connect(spark)
    for number, name in enumerate(CAMERAS):
        frames = spark.readStream.format("nilometer-camera").options(
            camera=number, started=world.started, rate=world.rate, seconds=seconds
        )
        db.create_stream(name, frames.load(), time="ts", lateness="400ms", rate=world.rate)
    return db.sql(statement())


def _start(spark: SparkSession, world: World, seconds: int, folder: Path) -> StreamingQuery:
    return (
        track(spark, world, seconds)
        .writeStream.format("parquet")
        .option("path", str(folder / "tracks"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )


def _watch(query: StreamingQuery, seconds: int, tally: Tally, console: Console) -> None:
    started = time.monotonic()
    with Screen(console, seconds, tally) as screen:
        while (passed := time.monotonic() - started) < seconds:
            tally.take(query.recentProgress)
            screen.update(passed)
            if query.exception() is not None:
                break
            time.sleep(_LOOK_EVERY)
        screen.update(seconds)
        query.processAllAvailable()
        tally.take(query.recentProgress)
        screen.update(seconds)
    query.stop()


def _read_tracks(folder: Path) -> list[tuple[int, ...]]:
    columns = ["obj_id", *CAMERAS]
    tracks: list[tuple[int, ...]] = []
    for file in folder.glob("*.parquet"):
        values = pq.read_table(file, columns=columns).to_pydict()
        tracks.extend(zip(*(values[column] for column in columns), strict=True))
    return tracks
