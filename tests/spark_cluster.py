"""A real Spark cluster on one machine: a master and workers, each with a /tmp of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from nilometer.spark.java import java_home, require_java
from tests.patience import LONG, wait_for


def require_namespaces() -> None:
    """Skip a test where a process cannot have a file system of its own."""
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False).returncode:
        pytest.skip("workers with a /tmp of their own need root")


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The URL of a master whose workers each see their own /tmp; `folder` is visible to all."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:
        running.enter_context(java_home(require_java(), folder))
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
        ports = ["--port", str(port), "--webui-port", str(free_port())]
        running.enter_context(_process(folder / "master.log", [*master, *ports]))
        wait_for(lambda: answers(port))
        for number in range(workers):
            told = folder / f"worker{number}.log"
            command = [
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--cores", "1", "--memory", "1g"),
                *("--webui-port", str(free_port())),
                *("--work-dir", str(folder / f"work{number}"), url),
            ]
            running.enter_context(_process(told, command, alone=True))
            wait_for(lambda told=told: "Successfully registered" in told.read_text())  # type: ignore[misc]
        yield url


def run_on_cluster(url: str, module: str, *arguments: str) -> None:
    """Run a module as a driver, in a process of its own; it must succeed."""
    run = subprocess.run(
        [sys.executable, "-m", module, url, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:]


@contextmanager
def _process(told: Path, command: list[str], *, alone: bool = False) -> Iterator[None]:
    started = [f"{_find_spark_home()}/bin/spark-class", *command]
    if alone:
        inside = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
        started = ["unshare", "-m", "bash", "-c", inside, "worker", *started]
    with told.open("wb") as output:
        process = subprocess.Popen(
            started, env=environment(), stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]),
    }


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
