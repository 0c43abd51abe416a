"""`nilometer demo idhm`: a server that looks for hazardous materials in boxes on a belt."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from nilometer.client import Client, Query
from nilometer.demo.broker import broker_at_work
from nilometer.demo.demo_server import DemoServer, server_for_demo
from nilometer.demo.ending import ends_like_ctrl_c
from nilometer.demo.sensor_process import sensors_at_work
from nilometer.errors import SessionError
from nilometer_papers.idhm.declare import BY_MQTT, CONFIG, DETECTORS, QUERIES, Reach, statements
from nilometer_papers.idhm.display import show_outcome, show_score
from nilometer_papers.idhm.knowledge_rows import knowledge_statements
from nilometer_papers.idhm.outcomes import Outcomes, Score
from nilometer_papers.idhm.site import box_of

_STARTING: Final = "Starting the server, with Spark (some ten seconds)"
_LEARNING: Final = "Storing what is known of materials, and starting the queries"
_FIRST_TO_WATCH: Final = "CREATE QUERY belt"
_FIRST_TO_KNOW: Final = "CREATE QUERY verdicts"
_STOPPING: Final = "Stopping the server"
_LOOK_EVERY: Final = 0.5
_PATIENCE: Final = 120.0
_PAGE: Final = "/console/idhm"
_BURST: Final = 1.0
_LIVE: Final = 4.0
"""Seconds of exposure in a burst that takes a second: the belt runs four times as fast."""
_MOST_BURSTS: Final = 120
"""There is a verdict after 15; the others are for an overloaded server."""
UNWATCHED: Final = 90
"""How many seconds it runs without a terminal to end it, unless specified."""


def run_demo(seconds: int | None, console: Console) -> bool:
    """Run the demo; True if boxes were decided.

    `seconds` None: in a terminal until Ctrl-C.
    """
    if seconds is None and not console.is_terminal:
        seconds = UNWATCHED
    if not console.is_terminal:
        console.print(_STARTING)
    with ends_like_ctrl_c(), ThreadPoolExecutor(1) as beside:
        known = beside.submit(lambda: list(knowledge_statements(DETECTORS.values())))
        return _show(seconds, console, known)


def _show(seconds: int | None, console: Console, known: Future[list[str]]) -> bool:
    """Start everything, and end everything afterwards."""
    secret, starting = secrets.token_urlsafe(), console.status(_STARTING)
    with (
        tempfile.TemporaryDirectory(prefix="nilometer-demo-") as folder,
        starting,
        server_for_demo(Path(folder, "idhm"), CONFIG) as started,
        broker_at_work(Path(folder)) as broker,
        sensors_at_work("nilometer_papers.idhm.at_work", [_settings(broker, secret)]) as site,
    ):
        server = started.wait()
        if broker is None:
            console.print("mosquitto is not installed: all detectors speak HTTP\n", style="dim")
        try:
            with Client(server.url, server.token) as client:
                demo = Demo(server, client, console)

                def begin() -> None:
                    site.begin()
                    _tell_link(demo)
                    starting.update(_LEARNING)

                declare(client, Reach(site.port, broker, secret), known, begin)
                starting.stop()
                return _run(demo, seconds)
        finally:
            starting.update(_STOPPING)
            starting.start()  # until the server has ended


@dataclass(frozen=True)
class Demo:
    """A server, a client for it, and the console for progress."""

    server: DemoServer
    client: Client
    console: Console


def _settings(broker: int | None, secret: str) -> str:
    """The settings of the process of belt and detectors."""
    settings = {
        "detectors": DETECTORS,
        "burst": _BURST,
        "live": _LIVE,
        "max_bursts": _MOST_BURSTS,
        "secret": secret,
        "broker": broker,
        "by_mqtt": [] if broker is None else [BY_MQTT],
    }
    return json.dumps(settings)


def declare(
    client: Client, reach: Reach, known: Future[list[str]], begin: Callable[[], None]
) -> None:
    """Run `pipeline.sql`; tables are filled before the first query that reads them.

    The belt starts as soon as somebody watches it: Spark gets ready while it moves.
    """
    for text in statements(reach):
        if text.startswith(_FIRST_TO_KNOW):
            for rows in known.result():
                client.execute(rows)
        client.execute(text)
        if text.startswith(_FIRST_TO_WATCH):
            begin()
    _wait_for_sensors(client)


def _wait_for_sensors(client: Client) -> None:
    """Return once the queries have made the database contact belt and detectors."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if sum(one["state"] == "connected" for one in client.sensors()) > len(DETECTORS):
            return
        time.sleep(0.1)
    raise SessionError("the detectors do not answer")


def _tell_link(demo: Demo) -> None:
    console, server = demo.console, demo.server
    link = f"{server.link}&next={_PAGE}"
    console.print(f"See the belt live in a browser:\n  [bold]{link}[/]", soft_wrap=True)
    later = f"the link works once, for 5 minutes; later: {server.url}/login"
    console.print(f"[dim]{later}\nwith the token {server.token}[/]\n", soft_wrap=True)


def _run(demo: Demo, seconds: int | None) -> bool:
    outcomes = _watch(demo, seconds)
    _show_failures(demo)
    score = Score.of(outcomes.settled)
    show_score(demo.console, score)
    return score.decided > 0


def _watch(demo: Demo, seconds: int | None) -> Outcomes:
    """Report every box that leaves the belt until time is up or somebody ends it.

    Time starts with the first verdict: until then Spark prepares the first micro-batches.
    """
    moves, verdicts = (Watched(demo.client.query(name)) for name in ("belt", "fused"))
    ending = "Ctrl-C ends it" if seconds is None else f"it ends after {seconds} s"
    until, outcomes = time.monotonic() + _PATIENCE, Outcomes()
    with suppress(KeyboardInterrupt), demo.console.status(f"The belt runs; {ending}"):
        while seconds is None or time.monotonic() < until:
            outcomes.take_moves(moves.news())
            is_first = verdicts.rows == 0
            outcomes.take_verdicts(verdicts.news())
            if is_first and verdicts.rows and seconds is not None:
                until = time.monotonic() + seconds
            for outcome in outcomes.settle(box_of):
                show_outcome(demo.console, outcome)
            time.sleep(_LOOK_EVERY)
    return outcomes


class Watched:
    """The rows of a query, each once."""

    def __init__(self, query: Query) -> None:
        self.rows = 0
        """How many there have been so far."""
        self._query = query
        self._offset = "start"

    def news(self) -> list[dict[str, Any]]:
        """The rows that have arrived since the last call, or some of them."""
        page = self._query.page(self._offset)
        self._offset = page.next
        rows: list[dict[str, Any]] = page.table.to_pylist()
        self.rows += len(rows)
        return rows


def _show_failures(demo: Demo) -> None:
    for query in demo.client.queries():
        if query["name"] in QUERIES and query["error"]:
            demo.console.print(f"[red]{query['name']}:[/] {query['error']}", soft_wrap=True)
