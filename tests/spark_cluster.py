"""A real Spark cluster on one machine: a master and workers, each with a /tmp of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from pyspark.find_spark_home import _find_spark_home

from nilometer.spark.java import archive_options, java_home, require_java
from nilometer.spark.session import first_archives
from tests.patience import LONG, wait_for


def executor_settings() -> dict[str, str]:
    """Settings with which executors that live for a minute or two start with little work."""
    return {
        "spark.executor.extraClassPath": first_archives(),
        "spark.executor.extraJavaOptions": _quick_to_start(),
    }


def _quick_to_start() -> str:
    return "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" + archive_options(require_java())


def require_namespaces() -> None:
    """Skip a test where a process cannot have a file system of its own."""
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False).returncode:
        pytest.skip("workers with a /tmp of their own need root")


@dataclass
class SparkCluster:
    """A master, and workers that can be killed and started again."""

    url: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self, number: int) -> None:
        """Start a worker, or start it again after it was killed."""
        log = self.folder / f"worker{number}.log"
        command = [
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--cores", "1", "--memory", "1g"),
            *("--webui-port", str(free_port())),
            *("--work-dir", str(self.folder / f"work{number}"), self.url),
        ]
        self.workers[number : number + 1] = [_start(log, command, alone=True)]
        wait_for(lambda: "Successfully registered" in log.read_text())

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors, as if its machine had lost power."""
        worker = psutil.Process(self.workers[number].pid)
        for one in [worker, *worker.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self.workers[number].wait()


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A master whose workers each see their own /tmp; `folder` is visible to all."""
    port = free_port()
    cluster = SparkCluster(f"spark://127.0.0.1:{port}", folder)
    with ExitStack() as running:
        running.enter_context(java_home(require_java(), folder))
        command = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
        ports = ["--port", str(port), "--webui-port", str(free_port())]
        master = _start(folder / "master.log", [*command, *ports])
        running.callback(_end, master)
        wait_for(lambda: answers(port))
        running.callback(lambda: [_end(one) for one in cluster.workers])
        for number in range(workers):
            cluster.start_worker(number)
        yield cluster


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


def _start(log: Path, command: list[str], *, alone: bool = False) -> subprocess.Popen[bytes]:
    started = [f"{_find_spark_home()}/bin/spark-class", *command]
    if alone:
        inside = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
        started = ["unshare", "-m", "bash", "-c", inside, "worker", *started]
    with log.open("wb") as output:
        return subprocess.Popen(
            started,
            env={
                **environment(),
                "SPARK_DAEMON_CLASSPATH": first_archives(),
                "SPARK_DAEMON_JAVA_OPTS": _quick_to_start(),
            },
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
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
