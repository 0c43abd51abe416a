"""A server under load: 100 clients follow results, 20 create and drop short queries.

Run separately: python -m benchmarks.server_load [SECONDS]. The server, with Spark and three
permanent queries, is its own process; the clients are another one beside it. The report has all
errors by kind (only the documented limits, status 429, do not count), the memory of the server's
processes from start to end, and how long `GET /queries` took meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import psutil

from tests.server_at_work import ServerAtWork, server_at_work

FOLLOWERS: Final = 100
SUBMITTERS: Final = 20
SECONDS: Final = 120
LIMIT: Final = 429
STREAM: Final = (
    "CREATE STREAM {name} (k BIGINT, v DOUBLE) FROM synthetic "
    "WITH (rate = {rate}, values = 'k=uniform(0,100), v=normal(20,5)')"
)
QUERIES: Final = {
    "matches": "SELECT A.k, A.v AS va, B.v AS vb FROM A, B WINDOW(A, B) = 1 SECOND WHERE A.k = B.k",
    "means": "SELECT k, AVG(v) AS mean FROM A [RANGE 5 SECONDS] GROUP BY k "
    "EMIT CHANGES EVERY 1 SECOND",
    "missing": "SELECT k FROM A [RANGE 2 SECONDS] EXCEPT SELECT k FROM B [RANGE 2 SECONDS]",
}
SHORT: Final = "SELECT k, v FROM A WHERE v > 20"


@dataclass
class Seen:
    """What the clients observed."""

    answers: Counter[str] = field(default_factory=Counter)
    """The number of responses by request and status: "GET 200"."""
    errors: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    """Chunks of results that followers received."""
    silent: int = 0
    """Followers that never received any."""
    listing: list[float] = field(default_factory=list)
    """How long each GET /queries took (seconds)."""
    said: str = ""
    """What the server wrote to its standard error."""
    memory: list[int] = field(default_factory=list)
    """Bytes of the server's own process, every two seconds; likewise below."""
    java: list[int] = field(default_factory=list)
    workers: list[tuple[int, int]] = field(default_factory=list)
    """The number of Spark's Python workers, and their bytes."""

    def note(self, what: str, answer: httpx.Response) -> None:
        self.answers[f"{what} {answer.status_code}"] += 1
        if answer.is_error and answer.status_code != LIMIT:
            with suppress(httpx.ResponseNotRead):
                self.errors[f"{what} {answer.status_code}: {answer.text[:200]}"] += 1


def run(seconds: int = SECONDS) -> Seen:
    """Put a server under load for a number of seconds."""
    with (
        tempfile.TemporaryDirectory(prefix="nilometer-load-") as folder,
        server_at_work(Path(folder)) as server,
    ):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
            # The client whose waits are measured must not wait for the others.
            listing = beside.submit(_list_in_process, server.url, server.headers(), seconds)
            seen = asyncio.run(_load(server, seconds))
            times, statuses = listing.result()
        seen.listing = times
        seen.answers.update(statuses)
        seen.said = server.errors.read_text()
        return seen


async def _load(server: ServerAtWork, seconds: int) -> Seen:
    seen = Seen()
    headers = server.headers()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, limits=limits, timeout=120
    ) as client:
        await _prepare(client)
        end = time.monotonic() + seconds
        names = list(QUERIES)
        tasks = [_follow(client, names[i % 3], end, seen) for i in range(FOLLOWERS)]
        tasks += [_submit(client, end, seen) for _ in range(SUBMITTERS)]
        tasks += [_watch(server.pid, end, seen)]
        await asyncio.gather(*tasks)
    return seen


async def _prepare(client: httpx.AsyncClient) -> None:
    """Create streams and three permanent queries, and wait until all have results."""
    for name in ("A", "B"):
        text = STREAM.format(name=name, rate=200)
        (await client.post("/sql", json={"statement": text})).raise_for_status()
    for name, text in QUERIES.items():
        made = await client.post("/queries", json={"name": name, "statement": text})
        made.raise_for_status()
    for name in QUERIES:
        while not (await client.get(f"/queries/{name}")).json()["result_rows"]:
            await asyncio.sleep(0.2)


async def _follow(client: httpx.AsyncClient, name: str, end: float, seen: Seen) -> None:
    """Follow a query's results as server-sent events."""
    got = 0
    try:
        async with (
            asyncio.timeout(max(1.0, end - time.monotonic())),
            client.stream(
                "GET", f"/queries/{name}/results", params={"follow": "true", "format": "sse"}
            ) as answer,
        ):
            seen.note("FOLLOW", answer)
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    json.loads(line[5:])
                    got += 1
    except TimeoutError:
        pass
    except httpx.HTTPError as error:
        seen.errors[f"FOLLOW {type(error).__name__}"] += 1
    seen.rows += got
    seen.silent += not got


async def _submit(client: httpx.AsyncClient, end: float, seen: Seen) -> None:
    """Repeatedly create a query, read its first rows, and drop it."""
    while time.monotonic() < end:
        try:
            made = await client.post("/queries", json={"statement": SHORT, "temporary": True})
            seen.note("CREATE", made)
            if made.is_error:
                await asyncio.sleep(float(made.headers.get("Retry-After", 1)))
                continue
            name = made.json()["name"]
            await asyncio.sleep(1)
            seen.note("PAGE", await client.get(f"/queries/{name}/results"))
            seen.note("DROP", await client.delete(f"/queries/{name}"))
        except httpx.HTTPError as error:
            seen.errors[f"SUBMIT {type(error).__name__}"] += 1


def _list_in_process(
    url: str, headers: dict[str, str], seconds: int
) -> tuple[list[float], Counter[str]]:
    """List all queries ten times per second; returns the times and the statuses."""
    times: list[float] = []
    statuses: Counter[str] = Counter()
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.perf_counter()
            statuses[f"LIST {client.get('/queries').status_code}"] += 1
            times.append(time.perf_counter() - begun)
            time.sleep(0.1)
    return times, statuses


async def _watch(pid: int, end: float, seen: Seen) -> None:
    server = psutil.Process(pid)
    while time.monotonic() < end:
        seen.memory.append(server.memory_info().rss)
        java, workers = 0, []
        for child in server.children(recursive=True):
            with suppress(psutil.Error):
                memory = child.memory_full_info().pss  # memory shared by workers is counted once
                if child.name() == "java":
                    java += memory
                else:
                    workers.append(memory)
        seen.java.append(java)
        seen.workers.append((len(workers), sum(workers)))
        await asyncio.sleep(2)


def report(seen: Seen) -> dict[str, Any]:
    """The figures of a run."""
    millis = np.array(seen.listing) * 1000
    quarter = max(1, len(seen.memory) // 8)
    return {
        "answers": dict(seen.answers),
        "errors": dict(seen.errors),
        "said by the server": seen.said[-2000:],
        "chunks followed": seen.rows,
        "followers without any": seen.silent,
        "GET /queries, ms": {
            name: round(float(np.percentile(millis, at)), 1)
            for name, at in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))
        },
        "server process, MB": [round(m / 1e6) for m in seen.memory[::quarter]],
        "Java, MB": [round(m / 1e6) for m in seen.java[::quarter]],
        "workers: number, MB": [(n, round(m / 1e6)) for n, m in seen.workers[::quarter]],
    }


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    for name, value in report(run(seconds)).items():
        print(f"{name:22}  {value}")


if __name__ == "__main__":
    main()
