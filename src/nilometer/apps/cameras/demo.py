"""`nilometer demo`: four cameras as sensors, two queries on Spark, every answer checked."""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

from rich.console import Console

import nilometer as nm
from nilometer.apps.cameras.cameras import Cameras, broker_at_work, cameras_at_work
from nilometer.apps.cameras.declare import HALL, YARD, declarations
from nilometer.apps.cameras.display import Checks, Screen, show_summary
from nilometer.apps.cameras.on_the_way import EVERY, WINDOW, OnTheWay
from nilometer.apps.cameras.on_the_way import statement as on_the_way_statement
from nilometer.apps.cameras.tally import Tally
from nilometer.apps.cameras.world import CAMERAS, SECOND, World
from nilometer.errors import SessionError

LONGEST_LEG: Final = 3 * SECOND
TRACKS: Final = "tracks"
ON_THE_WAY: Final = "on_the_way"
_LOOK_EVERY: Final = 0.25
_PATIENCE: Final = 30.0


def run_demo(seconds: int, rate: int, console: Console) -> bool:
    """Show the demo; True if every track was found, once, no other, and all counts are right."""
    starting = "Starting Spark (some ten seconds)"
    if not console.is_terminal:
        console.print(starting)
    with console.status(starting):
        spark = nm.local_spark(name="nilometer demo")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="nilometer-demo-") as folder,
            broker_at_work(Path(folder)) as broker,
            cameras_at_work(rate, seconds, *_by_way(broker)) as cameras,
            nm.connect(spark, path=Path(folder, "corridor")) as db,
        ):
            if broker is None:
                console.print("mosquitto is not installed: all cameras speak HTTP\n", style="dim")
            for text in declarations(cameras.port, broker):
                console.print(f"{text};\n", style="cyan", soft_wrap=True)
                db.sql(text)
            return _run(db, cameras, rate, seconds, console)
    finally:
        spark.stop()


def _by_way(broker: int | None) -> tuple[str, int | None, str]:
    """Which cameras answer over HTTP, and which publish to the broker."""
    numbers = [str(number) for number in range(1, len(CAMERAS) + 1)]
    if broker is None:
        return ",".join(numbers), None, ""
    return ",".join(numbers[:2]), broker, ",".join(numbers[2:])


def _run(db: nm.Database, cameras: Cameras, rate: int, seconds: int, console: Console) -> bool:
    queries = {TRACKS: statement(), ON_THE_WAY: on_the_way_statement()}
    for name, text in queries.items():
        console.print(f"CREATE QUERY {name} AS\n{text};\n", style="cyan", soft_wrap=True)
    with console.status("Starting the queries, which contact the cameras they need"):
        for name, text in queries.items():
            db.sql(f"CREATE QUERY {name} AS\n{text}")
        _wait_for_cameras(db)
    world = World(cameras.begin(), rate)
    tally, on_the_way = Tally(CAMERAS), OnTheWay(db.log_of(ON_THE_WAY))
    _watch(db, world, Screen(console, seconds, tally, on_the_way), seconds)
    with console.status("Checking every track and every count against the true ones"):
        checks = _check(db, world, seconds, on_the_way)
    show_summary(console, tally, seconds, on_the_way, checks)
    return checks.all_right


def statement() -> str:
    """Objects that pass all four cameras in order, at most three seconds for each leg."""
    seconds = LONGEST_LEG // SECOND
    legs = list(pairwise(CAMERAS))
    places = ", ".join(
        f"{table} {name}" for table, name in zip((HALL, HALL, YARD, YARD), CAMERAS, strict=True)
    )
    times = ", ".join(f"{name}._time AS {name}" for name in CAMERAS)
    windows = "\n   AND ".join(f"DWINDOW({a}, {b}) = {seconds} SECONDS" for a, b in legs)
    chosen = " AND ".join(f"{name}.camera = {i}" for i, name in enumerate(CAMERAS, 1))
    keys = "\n   AND ".join(f"{a}.seen.obj_id = {b}.seen.obj_id" for a, b in legs)
    return (
        f"SELECT {CAMERAS[0]}.seen.obj_id, {times}\n"
        f"FROM   {places}\n"
        f"{windows}\n"
        f"WHERE  {chosen}\n   AND {keys}"
    )


def _wait_for_cameras(db: nm.Database) -> None:
    """Return once the queries have made the database contact all cameras."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if sum(one.state == "connected" for one in db.sensors()) == len(CAMERAS):
            return
        time.sleep(0.05)
    raise SessionError("the cameras do not answer")


def _watch(db: nm.Database, world: World, screen: Screen, seconds: int) -> None:
    """Show both queries at work until all that the cameras tell has been worked through."""
    started = time.monotonic()
    tracks, counts = (db.queries[name] for name in (TRACKS, ON_THE_WAY))
    with screen:
        while (passed := time.monotonic() - started) < seconds:
            screen.update(passed, tracks.recentProgress)
            if any(query.exception() is not None for query in (tracks, counts)):
                break
            time.sleep(_LOOK_EVERY)
        _wait_for_readings(db, world, seconds)
        for query in (tracks, counts):
            query.processAllAvailable()
        screen.update(seconds, tracks.recentProgress)


def _wait_for_readings(db: nm.Database, world: World, seconds: int) -> None:
    """Return once everything that the cameras have seen is stored."""
    told = [world.arrivals(number, 0, seconds * SECOND) for number in range(len(CAMERAS))]
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if sum(one.readings for one in db.sensors()) >= sum(map(len, told)):
            return
        time.sleep(0.05)


def _check(db: nm.Database, world: World, seconds: int, on_the_way: OnTheWay) -> Checks:
    """What was found against what is true."""
    tracks = world.tracks(seconds * SECOND, LONGEST_LEG)
    counts = world.on_the_way(seconds * SECOND, WINDOW, EVERY)
    return Checks(
        len(tracks),
        sorted(_read_tracks(db)) == sorted(tracks),
        sum(map(len, counts.values())),
        on_the_way.is_right(counts),
    )


def _read_tracks(db: nm.Database) -> list[tuple[int, ...]]:
    columns = [f"unix_micros({name})" for name in CAMERAS]
    return [tuple(row) for row in db.history(TRACKS).selectExpr("obj_id", *columns).collect()]
