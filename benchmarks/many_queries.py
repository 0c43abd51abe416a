"""Many named queries on one server: the freshness of their results, and the cost.

Run separately: python -m benchmarks.many_queries [--counts 1,24,100] [--streams 10] [--seconds 30]
[--own 1,4]. The server is its own process, started as users start it; clients follow some of the
queries and compare the time of every result, which is when its row arrived in the log, with the
time at which they received it. A browser opens the console's list of queries. `--own` also measures
queries that each have their own Spark streaming query.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import psutil
from playwright.sync_api import sync_playwright

from tests.browser.visit import enter
from tests.server_at_work import ServerAtWork, server_at_work

COUNTS: Final = (1, 4, 12, 24, 100, 300, 1000)
OWN: Final = (1, 4, 12)
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
FOLLOWED: Final = 12
"""The number of queries that are followed: their clients must not dominate the measurement."""
CONFIG: Final = """
[server]
max_queries = 5000
max_queries_each = 5000
"""
STREAM: Final = (
    "CREATE STREAM {name} (k BIGINT, v DOUBLE) FROM synthetic "
    "WITH (rate = {rate}, values = 'k=uniform(0,100), v=normal(20,5)')"
)


@dataclass
class Figures:
    """The figures for a number of queries."""

    queries: int
    is_own: bool
    freshness: list[float] = field(default_factory=list)
    """Seconds from arrival in the log to the client, for every result."""
    first: list[float] = field(default_factory=list)
    """Seconds from CREATE QUERY to the first result, for additional queries."""
    cores: float = 0.0
    idle_cores: float | None = None
    memory: int = 0
    batch_millis: list[float] = field(default_factory=list)
    """The time that the queries themselves took in each micro-batch."""
    silent: int = 0
    """The number of queries without any result."""
    create_seconds: float = 0.0
    list_seconds: float | None = None
    """How long a browser takes to show the first page of the console's query list."""

    def row(self) -> dict[str, Any]:
        """The figures as a row of a table."""
        fresh = np.array(self.freshness or [np.nan])
        return {
            "queries": self.queries,
            "engine": "own" if self.is_own else "shared",
            "p50 s": round(float(np.percentile(fresh, 50)), 2),
            "p99 s": round(float(np.percentile(fresh, 99)), 2),
            "cores": round(self.cores, 2),
            "GB": round(self.memory / 1e9, 2),
            "first result s": round(float(np.median(self.first or [np.nan])), 2),
            "ms of a query": round(float(np.median(self.batch_millis or [np.nan])), 2),
            "silent": self.silent,
            "creating s": round(self.create_seconds, 1),
            "list s": self.list_seconds,
        }


def statements(streams: Sequence[str]) -> list[str]:
    """The mix: filters, sliding averages, DISTINCT, joins of two streams."""
    pairs = list(zip(streams, [*streams[1:], streams[0]], strict=True))
    texts = []
    for one, other in pairs:
        texts += [
            f"SELECT k, v FROM {one} WHERE v > {{n}}",
            f"SELECT k, AVG(v) AS mean FROM {one} [RANGE 5 SECONDS] WHERE k < {{m}} GROUP BY k "
            "EMIT CHANGES",
            f"SELECT DISTINCT k FROM {one} [RANGE 300 MILLISECONDS] WHERE k < {{m}} EMIT CHANGES",
            f"SELECT {one}.k, {one}.v AS va, {other}.v AS vb FROM {one}, {other} "
            f"WINDOW({one}, {other}) = 1 SECOND WHERE {one}.k = {other}.k AND {one}.v > {{n}}",
        ]
    return texts


async def measure(
    server: ServerAtWork,
    streams: Sequence[str],
    counts: Sequence[int],
    seconds: float,
    *,
    is_own: bool,
    with_bad: bool = False,
) -> list[Figures]:
    """The figures for increasing numbers of queries."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=server.url, headers=server.headers(), limits=limits, timeout=600
    ) as client:
        made: list[str] = []
        measured = []
        texts = statements(streams)
        for count in counts:
            figures = Figures(count, is_own)
            begun = time.monotonic()
            while len(made) < count:
                number = len(made)
                name = f"q{number}{'o' if is_own else ''}"
                text = texts[number % len(texts)].format(n=15 + number % 10, m=5 + number % 20)
                await _create(client, name, text, is_own)
                made.append(name)
            figures.create_seconds = time.monotonic() - begun
            await _wait_for_results(client, made, 20 + count / 5)
            await _watch(server, client, made, figures, seconds)
            for number in range(3):
                first = await _first_result(client, f"first{count}x{number}", texts[0], is_own)
                figures.first.append(first)
            figures.list_seconds = await asyncio.to_thread(_list_seconds, server)
            measured.append(figures)
            print(json.dumps(figures.row()), flush=True)
        if with_bad:
            measured.append(await _beside_bad(server, client, made, streams, seconds))
        for name in made:
            await client.delete(f"/queries/{name}")
    return measured


async def _beside_bad(
    server: ServerAtWork,
    client: httpx.AsyncClient,
    made: Sequence[str],
    streams: Sequence[str],
    seconds: float,
) -> Figures:
    """The figures of the same queries beside one that fails, a cross join, and a full one."""
    one = streams[0]
    for name, options, text in (
        ("raises", "on_error = 'stop'", f"SELECT 1 / (k - 50) AS x FROM {one}"),
        (
            "crosses",
            "state = '500MB'",
            f"SELECT X.v, Y.v AS w FROM {one} X, {one} Y WINDOW = 1 HOUR",
        ),
        ("fills", "results = '20kB'", f"SELECT k, v FROM {one}"),
    ):
        made_one = await client.post(
            "/sql", json={"statement": f"CREATE QUERY {name} WITH ({options}) AS {text}"}
        )
        made_one.raise_for_status()
    figures = Figures(len(made), is_own=False)
    await _watch(server, client, made, figures, 2 * seconds)
    for status in await _listed(client):
        if status["name"] in ("raises", "crosses", "fills"):
            shown = {key: status[key] for key in ("name", "phase", "engine", "error")}
            print(json.dumps(shown), flush=True)
            await client.delete(f"/queries/{status['name']}")
    print(json.dumps({"beside bad ones": figures.row()}), flush=True)
    return figures


async def _create(client: httpx.AsyncClient, name: str, text: str, is_own: bool) -> None:
    options = "WITH (engine = 'own') " if is_own else ""
    made = await client.post("/sql", json={"statement": f"CREATE QUERY {name} {options}AS {text}"})
    if made.is_error:
        raise SystemExit(f"{name}: {made.text}")


async def _wait_for_results(
    client: httpx.AsyncClient, names: Sequence[str], timeout: float
) -> None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        listed = {one["name"]: one for one in (await client.get("/queries")).json()}
        if all(listed[name]["result_rows"] for name in names):
            return
        await asyncio.sleep(0.5)


async def _watch(
    server: ServerAtWork,
    client: httpx.AsyncClient,
    names: Sequence[str],
    figures: Figures,
    seconds: float,
) -> None:
    """Follow some queries for a while."""
    step = max(1, len(names) // FOLLOWED)
    followed = names[::step][:FOLLOWED]
    before, begun = _seconds_of(server.pid), time.monotonic()
    rows = {one["name"]: one["result_rows"] for one in await _listed(client)}
    end = time.monotonic() + seconds
    await asyncio.gather(*(_follow(client, name, end, figures) for name in followed))
    figures.cores = (_seconds_of(server.pid) - before) / (time.monotonic() - begun)
    figures.memory = _memory_of(server.pid)
    for one in await _listed(client):
        if one["name"] in names and one["result_rows"] <= rows.get(one["name"], 0):
            figures.silent += 1
    for name in followed:
        health = (await client.get(f"/queries/{name}/health")).json()
        samples = health.get("samples", health) if isinstance(health, dict) else health
        figures.batch_millis += [one["batch_millis"] for one in samples[-20:]]


async def _listed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    queries: list[dict[str, Any]] = (await client.get("/queries")).json()
    return queries


async def _follow(client: httpx.AsyncClient, name: str, end: float, figures: Figures) -> None:
    """Follow the results of a query from now on."""
    params = {"follow": "true", "format": "sse"}
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(max(0.1, end - time.monotonic())),
            client.stream("GET", f"/queries/{name}/results", params=params) as answer,
        ):
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    now = time.time()
                    figures.freshness += [now - at for at in _times(line[5:])]


def _times(text: str) -> list[float]:
    """The times of the results in an event."""
    rows = json.loads(text).get("rows", [])
    return [datetime.fromisoformat(str(one["_time"])).timestamp() for one in rows]


async def _first_result(client: httpx.AsyncClient, name: str, text: str, is_own: bool) -> float:
    """Seconds from CREATE QUERY to the first result of a query at its client."""
    begun = time.monotonic()
    await _create(client, name, text.format(n=0, m=100), is_own)
    params = {"follow": "true", "format": "sse"}
    async with client.stream("GET", f"/queries/{name}/results", params=params) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data:") and _times(line[5:]):
                break
    taken = time.monotonic() - begun
    await client.delete(f"/queries/{name}")
    return taken


def _list_seconds(server: ServerAtWork) -> float | None:
    """The median time of several visits to the list of queries; None without a browser."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        return None
    taken = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        at = enter(browser, server.url, server.tokens["admin"], (1280, 860), "light")
        for _ in range(5):
            at.page.goto("about:blank")
            begun = time.monotonic()
            at.page.goto(f"{server.url}/console/queries")
            at.page.locator(".nm-query").first.wait_for()
            taken.append(time.monotonic() - begun)
        browser.close()
    return round(float(np.median(taken)), 2)


def _seconds_of(pid: int) -> float:
    """Processor time of a process and all its descendants, including those that have ended."""
    root = psutil.Process(pid)
    total = 0.0
    for one in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            total += sum(one.cpu_times()[:4])
    return total


def _memory_of(pid: int) -> int:
    root = psutil.Process(pid)
    total = 0
    for one in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            total += one.memory_full_info().pss
    return total


def run(
    counts: Sequence[int],
    own: Sequence[int],
    streams: int,
    seconds: float,
    with_bad: bool = False,
) -> list[Figures]:
    """All figures, from one server for shared engines and another for own ones."""
    measured = []
    for is_own, wanted in ((False, counts), (True, own)):
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="nilometer-many-") as folder:
            config = Path(folder, "server.toml")
            config.write_text(CONFIG)
            place = Path(folder, "plant")
            with server_at_work(place, "--config", str(config)) as server:
                names = _streams(server, streams)
                figures = asyncio.run(
                    measure(server, names, wanted, seconds, is_own=is_own, with_bad=with_bad)
                )
                measured += figures
                if not is_own:
                    print(json.dumps({"idle cores": _idle(server)}), flush=True)
                errors = server.errors.read_text()
                if errors:
                    print(errors)
    return measured


def _streams(server: ServerAtWork, count: int) -> list[str]:
    rates = [500, 100] if count == 2 else [60] * count
    names = [f"S{number}" for number in range(len(rates))]
    for name, rate in zip(names, rates, strict=True):
        server.sql(STREAM.format(name=name, rate=rate))
    return names


def _idle(server: ServerAtWork) -> float:
    """Cores used by a server without queries."""
    time.sleep(5)
    before, begun = _seconds_of(server.pid), time.monotonic()
    time.sleep(20)
    return round((_seconds_of(server.pid) - before) / (time.monotonic() - begun), 3)


def main() -> None:
    """Print a line for each number of queries."""
    parser = argparse.ArgumentParser(description=__doc__)

    def numbers(text: str) -> list[int]:
        return [int(one) for one in text.split(",") if one]

    parser.add_argument("--counts", type=numbers, default=COUNTS)
    parser.add_argument("--own", type=numbers, default=OWN)
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--bad", action="store_true", help="then again beside bad queries")
    options = parser.parse_args()
    run(options.counts, options.own, options.streams, options.seconds, options.bad)


if __name__ == "__main__":
    main()
