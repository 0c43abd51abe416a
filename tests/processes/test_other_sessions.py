"""Sessions that are not ours: Spark Connect, and workers that lack the right Nilometer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from nilometer.demo.cameras.world import SECOND, World
from nilometer.spark import ship
from nilometer.spark.fork_server import python_command
from nilometer.spark.ship import ship_function, ship_processor
from nilometer_papers.algorithms.conditions import SameKey
from tests.patience import LONG


def test_streams_batches_and_answers_over_spark_connect(tmp_path: Path) -> None:
    """The session has Spark's default state store, so this is also said there."""
    run = subprocess.run(
        [sys.executable, "-W", "default", "-m", "tests.spark.connect_process", str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": python_command()},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "set spark.sql.streaming.stateStore.providerClass to RocksDB" in run.stderr
    assert json.loads((tmp_path / "answer.json").read_text()) == {
        "sql": [["ONE", True]],
        "refused": "there is no function nosuch",
        "streamed": [[0, 0], [2, 1]],
        "late": {"A": 0, "B": 1},
        "batch": 1,
        "snapshot": [[1, 0.5], [1, 0.5]],
        "kept": [[1, 0.5], [4, 4.0]],
        "time": "1970-01-01T00:00:02+00:00",
        "missing": "there is no answer in nowhere yet",
    }


@pytest.mark.soak
@pytest.mark.limit(600)
def test_executors_of_their_own_one_of_which_is_killed(tmp_path: Path) -> None:
    """Envelopes pass through Spark's shuffle, and buckets move to an executor without files."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster_process", str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": python_command()},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    # Each row joins those of its own micro-batch and of the neighbouring ones.
    expected = 20_000 * (5 + 2 * 4)
    assert json.loads((tmp_path / "answer.json").read_text()) == {
        "results": expected,
        "right": True,
    }


WORKER = """
import sys, pickle, pyarrow
{before}
work = pickle.load(open({payload!r}, "rb"))
try:
    list(work(iter([])))
except Exception as error:
    print(type(error).__name__, error)
"""

MISSING = """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "{missing}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""

OTHER = """
import nilometer.version
nilometer.version.VERSION = "0.0.1"
"""


def in_a_worker(
    before: str, tmp_path: Path, work: ship.BatchFunction = lambda batches: batches
) -> str:
    payload = tmp_path / "work"
    payload.write_bytes(cloudpickle.dumps(ship_function(work)))
    script = WORKER.format(before=before, payload=str(payload))
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LONG
    )
    return run.stdout.strip()


def test_a_worker_without_nilometer(tmp_path: Path) -> None:
    assert in_a_worker(MISSING.format(missing="nilometer"), tmp_path) == (
        f"RuntimeError nilometer is not installed in the worker's Python {sys.executable}: "
        "install nilometer==0.1.0 there, or start Spark with PYSPARK_PYTHON set"
    )


def test_a_worker_without_the_papers(tmp_path: Path) -> None:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches if SameKey() else iter(())

    assert in_a_worker(MISSING.format(missing="nilometer_papers"), tmp_path, work) == (
        f"RuntimeError nilometer_papers is not installed in the worker's Python {sys.executable}: "
        "install the same packages there as on the driver"
    )


def test_a_worker_with_another_nilometer(tmp_path: Path) -> None:
    assert in_a_worker(OTHER, tmp_path) == (
        f"RuntimeError the worker's Python {sys.executable} has nilometer 0.0.1, but the driver "
        "has 0.1.0: install nilometer==0.1.0 there, or start Spark with PYSPARK_PYTHON set"
    )


def test_the_driver_side_worker_needs_nothing_but_the_schema(tmp_path: Path) -> None:
    """Spark calls init on the driver, too, only to learn the state's schema."""
    processor = pickled(ship_processor(object()))

    class Handle:
        def getMapState(self, name: str, key: object, value: object) -> str:
            return name

    processor.init(Handle())
    assert processor.state == "state"
    processor.close()


def pickled(work: object) -> ship.StatefulProcessor:
    return cloudpickle.loads(cloudpickle.dumps(work))


def test_shipped_functions_do_their_work() -> None:
    work = pickled(ship_function(lambda batches: (b.slice(1) for b in batches)))
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    assert [b.to_pydict() for b in work(iter([batch]))] == [{"a": [2]}]  # type: ignore[operator]


@pytest.mark.parametrize("given", [["demo", "--seconds", "0"], ["demo", "--rate", "x"], ["dance"]])
def test_the_command_line_refuses_kindly(given: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "nilometer", *given], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert "Error" in run.stderr


def test_the_demo_finds_every_track_and_prints_nothing_else() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "nilometer", "demo", "--seconds", "6", "--rate", "300"],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert run.stderr == ""
    assert run.returncode == 0, run.stdout
    lines = run.stdout.splitlines()
    expected = len(World(0, 300).tracks(6 * SECOND, 3 * SECOND))
    assert expected > 0
    assert lines[-2] == f"right: all {expected:,} true tracks were found, each once"
    counts = "right: all [0-9]+ counts of sightings and of objects on the way, every second"
    assert re.fullmatch(counts, lines[-1])
    assert any(line.startswith("watermark") for line in lines)
    assert not any("WARN" in line or "Traceback" in line for line in lines)
