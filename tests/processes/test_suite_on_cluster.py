"""Tests that usually run with Spark on one machine, with three workers of a real cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.spark_cluster import require_namespaces

SHORT = (
    "test_windowed_streaming.py::test_a_join_under_a_group_by_on_another_key_is_two_stages",
    "test_log_queries.py::test_join_from_log_to_log_is_naive_join_across_a_restart",
    "test_query_lifecycle.py::test_a_query_whose_worker_is_killed_goes_on_with_every_result_once",
)
WHOLE = (
    "test_streaming_join.py",
    "test_hosted_joins.py",
    "test_batch_join.py",
    "test_windowed_streaming.py",
    "test_window_answers.py",
    "test_log_rows.py",
    "test_log_queries.py",
    "test_database.py",
    "test_sensor_database.py",
    "test_query_lifecycle.py",
    "test_query_buckets.py",
    "test_engine.py",
    "test_poison_rows.py",
    "test_streams_together.py",
)
"""Joins, windowed plans, logs, named queries, kills; not the command line, whose Spark is local."""


@pytest.mark.limit(600)
def test_some_run_on_a_cluster() -> None:
    run_on_cluster(*SHORT)


@pytest.mark.soak
@pytest.mark.limit(3600)
@pytest.mark.parametrize("file", WHOLE)
def test_all_of_a_kind_run_on_a_cluster(file: str) -> None:
    run_on_cluster(file)


def run_on_cluster(*tests: str) -> None:
    """Run tests of tests/spark in a process with a cluster, and logs in an object store."""
    require_namespaces()
    build = Path.cwd() / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--tb", "short", "--basetemp", folder]
        command += [f"tests/spark/{one}" for one in tests]
        run = subprocess.run(
            command,
            env={**os.environ, "NILOMETER_CLUSTER": "3"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
