"""Workers that come after the server: new queries use their cores."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes.late_workers_process import WORKERS
from tests.spark_cluster import SparkCluster, environment, require_namespaces, spark_cluster


@contextmanager
def driver(cluster: SparkCluster) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.processes.late_workers_process", cluster.url]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(one) for one in process.stdout.readline().split()]


@pytest.mark.soak
@pytest.mark.limit(600)
def test_a_query_gets_as_many_buckets_as_there_are_cores_when_it_is_planned() -> None:
    require_namespaces()
    build = Path.cwd() / "build"
    build.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=build) as folder,
        spark_cluster(Path(folder), workers=1) as cluster,
        driver(cluster) as process,
    ):
        assert line(process) == [2]  # Spark counts at least two
        for number in range(1, WORKERS):
            cluster.start_worker(number)
        assert line(process) == [WORKERS, WORKERS]
