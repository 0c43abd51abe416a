"""`nilometer demo`: a server, four cameras as its sensors, three queries, every answer checked."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa
from rich.console import Console

from nilometer.client import Client
from nilometer.demo.broker import broker_at_work
from nilometer.demo.cameras.cameras import cameras_at_work
from nilometer.demo.cameras.changing_counts import Counts, are_right, changes_in
from nilometer.demo.cameras.dashboard import ADDRESS, NAME, dashboard
from nilometer.demo.cameras.declare import declarations
from nilometer.demo.cameras.display import Checks, Queries, Screen, show_checks, show_summary
from nilometer.demo.cameras.questions import (
    BUSY,
    BUSY_WINDOW,
    EVERY,
    LONGEST_LEG,
    ON_THE_WAY,
    TRACKS,
    WINDOW,
    questions,
)
from nilometer.demo.cameras.tally import Tally
from nilometer.demo.cameras.world import CAMERAS, SECOND, World
from nilometer.demo.demo_server import DemoServer, server_for_demo
from nilometer.demo.ending import ends_like_ctrl_c
from nilometer.demo.sensor_process import SensorProcess
from nilometer.errors import SessionError

_LOOK_EVERY: Final = 0.5
_PATIENCE: Final = 120.0
_STARTING: Final = "Starting the server, with Spark (some ten seconds)"
_STOPPING: Final = "Stopping the server"
UNWATCHED: Final = 60
"""How many seconds it runs without a terminal to end it, unless specified."""


def run_demo(seconds: int | None, rate: int, console: Console) -> bool:
    """Run the demo; True if every track was found, once, no other, and all counts are right.

    `seconds` None: in a terminal until Ctrl-C, and then nothing is checked.
    """
    if seconds is None and not console.is_terminal:
        seconds = UNWATCHED
    starting = console.status(_STARTING)
    if not console.is_terminal:
        console.print(_STARTING)
    with (
        ends_like_ctrl_c(),
        tempfile.TemporaryDirectory(prefix="nilometer-demo-") as folder,
        starting,
        server_for_demo(Path(folder, "corridor")) as started,
        broker_at_work(Path(folder)) as broker,
        cameras_at_work(rate, seconds or 0, *_by_way(broker)) as cameras,
    ):
        server = started.wait()
        starting.stop()
        if broker is None:
            console.print("mosquitto is not installed: all cameras speak HTTP\n", style="dim")
        try:
            with Client(server.url, server.token) as client:
                for text in declarations(cameras.port, broker):
                    console.print(f"{text};\n", style="cyan", soft_wrap=True)
                    client.execute(text)
                return _run(Demo(server, client, console), cameras, rate, seconds)
        finally:
            starting.update(_STOPPING)
            starting.start()  # until the server has ended


@dataclass(frozen=True)
class Demo:
    """A server, a client for it, and the console for progress."""

    server: DemoServer
    client: Client
    console: Console


def _by_way(broker: int | None) -> tuple[str, int | None, str]:
    """Which cameras answer over HTTP, and which publish to the broker."""
    numbers = [str(number) for number in range(1, len(CAMERAS) + 1)]
    if broker is None:
        return ",".join(numbers), None, ""
    return ",".join(numbers[:2]), broker, ",".join(numbers[2:])


def _run(demo: Demo, cameras: SensorProcess, rate: int, seconds: int | None) -> bool:
    console = demo.console
    for name, text in questions().items():
        console.print(f"CREATE QUERY {name} AS\n{text};\n", style="cyan", soft_wrap=True)
    with console.status("Starting the queries, which contact the cameras they need"):
        for name, text in questions().items():
            demo.client.execute(f"CREATE QUERY {name} AS\n{text}")
        _wait_for_cameras(demo.client)
    demo.client.put_dashboard(NAME, dashboard())
    link = f"{demo.server.link}&next={quote(ADDRESS)}"
    console.print(f"See its answers live in a browser:\n  [bold]{link}[/]", soft_wrap=True)
    later = f"the link works once, for 5 minutes; later: {demo.server.url}/login"
    console.print(f"[dim]{later}\nwith the token {demo.server.token}[/]\n", soft_wrap=True)
    world = World(cameras.begin(), rate)
    queries = Queries(Tally(CAMERAS))
    passed = _watch(demo, queries, seconds)
    if seconds is None:
        show_summary(console, queries, passed)
        return True
    with console.status("Checking every track and every count against the true ones"):
        _wait_for_readings(demo.client, world, seconds)
        checks = _check_when_done(demo.client, world, seconds)
    _look(demo.client, queries)
    show_summary(console, queries, seconds)
    show_checks(console, checks)
    return checks.all_right


def _wait_for_cameras(client: Client) -> None:
    """Return once the queries have made the database contact all cameras."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if sum(one["state"] == "connected" for one in client.sensors()) == len(CAMERAS):
            return
        time.sleep(0.1)
    raise SessionError("the cameras do not answer")


def _watch(demo: Demo, queries: Queries, seconds: int | None) -> float:
    """Show the running queries until time is up or somebody ends it; return how long that was."""
    started = time.monotonic()
    with suppress(KeyboardInterrupt), Screen(demo.console, seconds, queries) as screen:
        while seconds is None or time.monotonic() - started < seconds:
            _look(demo.client, queries)
            screen.update(time.monotonic() - started)
            time.sleep(_LOOK_EVERY)
    return time.monotonic() - started


def _look(client: Client, queries: Queries) -> None:
    """Ask the server for the state of the queries."""
    queries.stored = sum(one["readings"] for one in client.sensors())
    tracks = client.query(TRACKS)
    queries.tally.take(tracks.health(), tracks.status()["result_rows"])
    queries.busy = _counts(client.query(BUSY).answer().to_arrow())
    answer = client.query(ON_THE_WAY).answer()
    queries.on_the_way, queries.instant = _counts(answer.to_arrow()), answer.instant


def _counts(answer: pa.Table) -> Counts:
    cameras, counts = (column.to_pylist() for column in answer.columns[:2])
    return dict(zip(cameras, counts, strict=True))


def _wait_for_readings(client: Client, world: World, seconds: int) -> None:
    """Return once everything that the cameras have seen is stored."""
    expected = [world.arrivals(number, 0, seconds * SECOND) for number in range(len(CAMERAS))]
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if sum(one["readings"] for one in client.sensors()) >= sum(map(len, expected)):
            return
        time.sleep(0.1)


def _check_when_done(client: Client, world: World, seconds: int) -> Checks:
    """Compare the results with the truth, once the queries have processed everything."""
    tracks = sorted(world.tracks(seconds * SECOND, LONGEST_LEG))
    away = world.on_the_way(seconds * SECOND, WINDOW, EVERY)
    busy = world.busy(seconds * SECOND, BUSY_WINDOW, EVERY, 2)
    counts = sum(len(one) for truth in (away, busy) for one in truth.values())
    rows, until = -1, 0.0
    while True:
        if (now_there := sum(one["result_rows"] for one in client.queries())) != rows:
            rows, until = now_there, time.monotonic() + _PATIENCE
        counts_right = _is_right(client, ON_THE_WAY, away) and _is_right(client, BUSY, busy)
        checks = compare(tracks, _tracks(client), counts, counts_right)
        if checks.all_right or time.monotonic() > until:
            return checks
        time.sleep(_LOOK_EVERY)


def compare(
    true: list[tuple[int, ...]], found: list[tuple[int, ...]], counts: int, counts_right: bool
) -> Checks:
    """Count what is missing, and what is wrong."""
    missing, false = Counter(true) - Counter(found), Counter(found) - Counter(true)
    return Checks(len(true), missing.total(), false.total(), counts, counts_right)


def _is_right(client: Client, query: str, truth: Mapping[int, Counts]) -> bool:
    return are_right(changes_in(client.query(query).to_arrow()), truth)


def _tracks(client: Client) -> list[tuple[int, ...]]:
    """Every track that was found: its object, and when each camera saw it."""
    rows = client.query(TRACKS).to_arrow()
    columns = [rows[name].cast(pa.int64()).to_pylist() for name in ("obj_id", *CAMERAS)]
    return sorted(zip(*columns, strict=True))
