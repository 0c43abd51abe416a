"""A server that is told to stop, and one whose Spark ends: those who follow are told, and go on."""

from __future__ import annotations

import asyncio
import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

from tests.patience import LONG, slowness, wait_for
from tests.server_at_work import ServerAtWork, server_at_work

FOLLOWERS = 50


async def follow_to_the_end(client: httpx.AsyncClient, began: asyncio.Semaphore) -> Any:
    """The last thing that a follower is told."""
    last: Any = None
    wanted = {"follow": "true", "format": "jsonl", "from": "start"}
    async with client.stream("GET", "/queries/q/results", params=wanted) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line:
                if last is None:
                    began.release()
                last = json.loads(line)
    return last


async def stop_while_many_follow(server: ServerAtWork) -> list[Any]:
    limits = httpx.Limits(max_connections=None)
    began = asyncio.Semaphore(0)
    async with httpx.AsyncClient(
        base_url=server.url, headers=server.headers("read"), limits=limits, timeout=LONG
    ) as client:
        following = [
            asyncio.create_task(follow_to_the_end(client, began)) for _ in range(FOLLOWERS)
        ]
        for _ in following:
            await began.acquire()
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGINT)  # somebody is impatient
        await asyncio.sleep(0.1)
        server.process.send_signal(signal.SIGINT)
        return await asyncio.gather(*following)


def java_of(server: ServerAtWork) -> psutil.Process:
    return next(one for one in psutil.Process(server.pid).children() if one.name() == "java")


def test_followers_are_told_that_the_server_stops(tmp_path: Path) -> None:
    patient = tmp_path / "patient.toml"  # on a busy machine, to tell all of them takes a while
    patient.write_text("[server]\nstop_seconds = 60\n")
    with server_at_work(tmp_path / "plant", "--config", str(patient)) as server:
        server.sql(
            "CREATE STREAM A (k BIGINT) FROM synthetic WITH (rate = 50, values = 'k=counter(0,1)')"
        )
        server.sql("CREATE QUERY q AS SELECT k FROM A")
        ends = asyncio.run(stop_while_many_follow(server))
        assert [one["end"]["error"]["kind"] for one in ends] == ["ClosedError"] * FOLLOWERS
        assert server.process.wait(LONG) == 0


def measured(server: ServerAtWork) -> dict[str, float]:
    """Metrics that have no labels, by name."""
    text = httpx.get(f"{server.url}/metrics", headers=server.headers("read"), timeout=LONG).text
    samples = [s for one in text_string_to_metric_families(text) for s in one.samples]
    return {one.name: one.value for one in samples if not one.labels}


def test_a_server_without_spark_ends(tmp_path: Path) -> None:
    with server_at_work(tmp_path / "plant") as server:
        figures = measured(server)
        for name in ("java_heap_bytes", "java_threads", "java_resident_bytes", "disk_free_bytes"):
            assert figures[f"nilometer_{name}"] > 0, name
        assert figures["nilometer_engine_restarts_total"] == 0
        java_of(server).kill()
        assert server.process.wait(LONG) == 1
        assert "Spark has terminated, so the server stops" in server.errors.read_text()
        lines = (server.folder / "server.log").read_text().splitlines()
        levels = [line.split(" ", 2)[1] for line in lines if " nilometer.server: " in line]
        assert levels[0] == "INFO"  # that it listens
        assert "ERROR" in levels
        assert "Spark has terminated" in "".join(lines)
        assert (server.folder / "server-spark.log").stat().st_size


def test_a_server_ends_in_time_whatever_runs(tmp_path: Path) -> None:
    """Java looks for such patterns for minutes, and nothing interrupts it."""
    text = "a" * 380
    slow = " OR ".join(f"s RLIKE 'a*a*a*b{number}'" for number in range(60))
    with server_at_work(tmp_path / "plant") as server:
        server.sql("CREATE TABLE T (s STRING)")
        server.sql(f"INSERT INTO T VALUES ('{text}!')")
        with ThreadPoolExecutor() as threads:
            asking = threads.submit(
                httpx.post,
                f"{server.url}/sql",
                json={"statement": f"SELECT s FROM T WHERE {slow}"},
                headers=server.headers("read"),
                timeout=LONG,
            )
            java = java_of(server)
            used = java.cpu_times().user
            wait_for(lambda: java.cpu_times().user > used + 3.0, every=0.1)  # it works on that
            began = monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(LONG)
            took = monotonic() - began
            with suppress(httpx.HTTPError):
                asking.result()
        assert took < 10 * slowness(), took
        java.wait(LONG)
