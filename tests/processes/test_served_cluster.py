"""A server whose queries run on a real cluster: it loses an executor, or comes from one machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

import nilometer as nm
from tests.patience import LONG, wait_for
from tests.s3_server import S3_ENVIRONMENT, s3_server
from tests.server_at_work import ServerAtWork, server_at_work
from tests.spark_cluster import executor_settings, free_port, require_namespaces, spark_cluster

CONFIG = """
[spark]
master = "{url}"
"spark.driver.host" = "127.0.0.1"
"spark.executor.memory" = "512m"
# Both executors have the same host, but not the same disk.
"spark.shuffle.readHostLocalDisk" = false
"""
_ENVIRONMENT = "".join(
    f'"spark.executorEnv.{name}" = "{value}"\n' for name, value in S3_ENVIRONMENT.items()
)
STREAM = (
    "CREATE STREAM S (n BIGINT, HISTORY FOREVER) FROM synthetic "
    "WITH (rate = 100, values = 'n=counter(0,1)'{more})"
)
IN_STORE = ", durability = 'disk', ship_every = '1 second'"
OWN = (
    "CREATE QUERY own WITH (engine = 'own') AS SELECT A.n FROM S A, S B "
    "WINDOW (A, B) = 2 SECONDS WHERE A.n = B.n AND A.n % 3 = 0"
)
UNFINISHED = "CREATE QUERY unfinished AS SELECT n, soundex('Nile') AS s FROM S WHERE n % 5 = 0"
"""Spark computes a part of it."""
COUNTS = "SELECT COUNT(*) AS n, COUNT(DISTINCT n) AS d, MIN(n) AS f, MAX(n) AS m FROM {name}"


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A folder that all see; /tmp is another one for every worker."""
    require_namespaces()
    build = Path.cwd() / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        yield Path(folder)


def configured(url: str) -> str:
    """The lines of a configuration for a cluster."""
    java = "".join(f'"{name}" = "{value}"\n' for name, value in executor_settings().items())
    return CONFIG.format(url=url) + java


@pytest.fixture(scope="module")
def cluster(shared: Path) -> Iterator[str]:
    with spark_cluster(shared) as cluster:
        yield cluster.url


def executors() -> list[int]:
    pids = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline()):
                pids.append(one.pid)
    return pids


def rows(server: ServerAtWork, statement: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = server.sql(statement)["rows"]
    return answer


def statuses(server: ServerAtWork) -> list[dict[str, Any]]:
    answer = httpx.get(f"{server.url}/queries", headers=server.headers(), timeout=LONG)
    queries: list[dict[str, Any]] = answer.json()
    return queries


def phases(server: ServerAtWork) -> dict[str, str]:
    return {one["name"]: one["phase"] for one in statuses(server)}


def have_passed(server: ServerAtWork, queries: dict[str, int], number: int) -> bool:
    """Whether all of the queries, each of every so many numbers, have results beyond a number.

    Their results are only counted: to read them again and again is work.
    """
    counts = {one["name"]: one["result_rows"] for one in statuses(server)}
    return all(counts[name] * step > number for name, step in queries.items())


@pytest.mark.limit(900)
@pytest.mark.parametrize("buckets", [None, pytest.param(3, marks=pytest.mark.soak)])
def test_the_state_of_queries_needs_no_folder_that_executors_see(
    shared: Path, cluster: str, tmp_path: Path, buckets: int | None
) -> None:
    """The folder of the database is under /tmp, which is another one for executors."""
    queries = {"even": 2, "own": 3, "unfinished": 5}
    with s3_server() as options:
        config = shared / "store.toml"
        config.write_text(configured(cluster) + _ENVIRONMENT)
        more = ["--config", str(config), "--logs", f"s3://bucket/plant?{options}"]
        env = {"PYSPARK_PYTHON": sys.executable, **S3_ENVIRONMENT}
        with server_at_work(tmp_path / "plant", *more, env=env) as server:
            server.sql(STREAM.format(more=IN_STORE))
            server.sql("CREATE QUERY even AS SELECT n FROM S WHERE n % 2 = 0")
            server.sql(OWN)
            server.sql(UNFINISHED)
            check_loss_of_an_executor(server, queries)
            if buckets is not None:
                server.sql(f"ALTER QUERY own SET (buckets = {buckets})")
        with server_at_work(tmp_path / "plant", *more, env=env) as server:
            stored = rows(server, COUNTS.format(name="S"))[0]["m"]
            wait_for(lambda: have_passed(server, queries, stored), 300, every=1.0)
            require_each_once(server, queries)
            folder = tmp_path / "plant" / "checkpoints"  # what is being written is soon renamed
            wait_for(lambda: not list(folder.glob("own/state/*/*/*.tmp")), 60)


@pytest.mark.soak
@pytest.mark.limit(600)
def test_queries_run_on_executors_and_lose_nothing_with_one_of_them(
    shared: Path, cluster: str
) -> None:
    config = shared / "server.toml"
    config.write_text(configured(cluster))
    env = {"PYSPARK_PYTHON": sys.executable}
    with server_at_work(shared / "plant", "--config", str(config), env=env) as server:
        server.sql(STREAM.format(more=""))
        server.sql("CREATE QUERY even AS SELECT n FROM S WHERE n % 2 = 0")
        server.sql(
            "CREATE QUERY digits AS SELECT n % 10 AS d, COUNT(*) AS c FROM S [UNBOUNDED] "
            "GROUP BY n % 10 EMIT CHANGES"
        )
        server.sql("CREATE QUERY own WITH (engine = 'own') AS SELECT n FROM S WHERE n % 3 = 0")
        check_loss_of_an_executor(server, {"even": 2, "own": 3})


def check_loss_of_an_executor(server: ServerAtWork, queries: dict[str, int]) -> None:
    """Queries, each of every so many numbers, go on without one of the executors."""

    wait_for(lambda: have_passed(server, queries, 0), 300, every=1, said=lambda: phases(server))
    assert executors(), "nothing runs on the cluster"
    os.kill(executors()[0], signal.SIGKILL)
    stored = rows(server, COUNTS.format(name="S"))[0]["m"]
    wait_for(
        lambda: have_passed(server, queries, stored), 300, every=1.0, said=lambda: phases(server)
    )
    require_each_once(server, queries)
    assert set(phases(server).values()) == {"running"}


def require_each_once(server: ServerAtWork, queries: dict[str, int]) -> None:
    for name, step in queries.items():
        counts = rows(server, COUNTS.format(name=name))[0]
        wanted = (counts["m"] - counts["f"]) // step + 1  # it began when it was made
        assert counts["n"] == counts["d"] == wanted, (name, counts)


@pytest.mark.soak
@pytest.mark.limit(300)
def test_a_folder_that_executors_do_not_see_is_refused_at_the_start(
    cluster: str, shared: Path, tmp_path: Path
) -> None:
    config = shared / "server.toml"
    config.write_text(configured(cluster))
    env = {"PYSPARK_PYTHON": sys.executable}
    with (
        pytest.raises(AssertionError, match="executors do not share the folder"),
        server_at_work(tmp_path / "plant", "--config", str(config), env=env),
    ):
        pass


@pytest.mark.soak
@pytest.mark.limit(900)
def test_a_database_from_one_machine_goes_on_on_a_cluster(
    cluster: str, shared: Path, tmp_path: Path
) -> None:
    """The way of docs/cluster.md: stop, move-logs, start with [spark], ALTER QUERY."""
    plant, readings, config = tmp_path / "plant", tmp_path / "readings.jsonl", shared / "way.toml"
    port, env = free_port(), {"PYSPARK_PYTHON": sys.executable, **S3_ENVIRONMENT}
    files = f'[files]\nallowed = ["{tmp_path}"]\n'
    config.write_text(files)
    add_readings(readings, range(200))
    arguments = ("--config", str(config), "--cores", "1")
    with server_at_work(plant, *arguments, port=port, env=env) as server:
        server.sql(
            "CREATE STREAM S (n BIGINT, HISTORY FOREVER) FROM file "
            f"WITH (address = '{readings}', speed = 'max', follow = true)"
        )
        server.sql("CREATE QUERY even AS SELECT n FROM S WHERE n % 2 = 0 FROM START")
        server.sql(LATER)
        followed = {name: follow(server, name) for name in ("even", "later")}
        wait_for(lambda: are_right(server, followed, 200), 300, said=lambda: phases(server))
        assert buckets(server) == 1
    add_readings(readings, range(200, 300))
    with s3_server() as options:
        place = f"s3://bucket/plant?{options}"
        command = [sys.executable, "-m", "nilometer", "move-logs", str(plant), place]
        subprocess.run(command, env={**os.environ, **env}, check=True, timeout=LONG)
        (plant / "logs").rename(tmp_path / "old logs")
        config.write_text(files + configured(cluster) + _ENVIRONMENT)
        with server_at_work(plant, *arguments[:2], port=port, env=env) as server:
            server.sql("ALTER STREAM S SET (durability = 'disk', ship_every = '1 second')")
            server.sql("ALTER QUERY later SET (buckets = 3)")
            add_readings(readings, range(300, 400))
            wait_for(lambda: are_right(server, followed, 400), 300, said=lambda: phases(server))
            assert buckets(server) == 3
            assert executors(), "nothing runs on the cluster"
            assert not (plant / "logs").exists()


LATER = (
    "CREATE QUERY later WITH (engine = 'own') AS "
    "SELECT A.n AS n FROM S A, S B WINDOW = 1 DAY WHERE A.n = B.n + 150 FROM START"
)
"""Rows meet others that came long before, also before the database was moved."""


def add_readings(file: Path, numbers: range) -> None:
    with file.open("a") as opened:
        opened.writelines(json.dumps({"n": number}) + "\n" for number in numbers)


def follow(server: ServerAtWork, query: str) -> list[int]:
    """What a client is told of a query from its first result on, also by servers to come."""
    numbers: list[int] = []

    def listen() -> None:
        with nm.Client(server.url, server.tokens["read"]) as client:
            for row in client.query(query).follow(start="start"):
                numbers.append(row["n"])

    threading.Thread(target=listen, daemon=True).start()
    return numbers


def are_right(server: ServerAtWork, followed: dict[str, list[int]], count: int) -> bool:
    """Whether every result of so many readings is there once, for followers as well."""
    wanted = {"even": list(range(0, count, 2)), "later": list(range(150, count))}
    stored = {one: [row["n"] for row in rows(server, f"SELECT n FROM {one}")] for one in wanted}
    return all(sorted(stored[one]) == sorted(followed[one]) == wanted[one] for one in wanted)


def buckets(server: ServerAtWork) -> int:
    [shown] = [one["buckets"] for one in rows(server, "SHOW QUERIES") if one["name"] == "later"]
    return int(shown)
