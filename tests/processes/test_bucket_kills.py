"""kill -9 while the number of buckets of a query changes: every result is there once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.upkeep.check import check_database
from tests.patience import wait_for
from tests.spark.test_query_buckets import Plant, started

ROUNDS = int(os.environ.get("NILOMETER_BUCKET_KILLS", "6"))


@pytest.mark.soak
@pytest.mark.limit(1200)
def test_a_process_that_is_killed_at_any_moment(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(24)
    with nm.connect(spark, path=tmp_path / "plant") as db:
        plant = Plant(db, tmp_path, seed=24)
        started(plant, "sliding")
    for _ in range(ROUNDS):
        run_and_kill(tmp_path, plant, rng.uniform(0, 6))
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.resume()
        plant.db = db
        plant.load()
        plant.wait("q", "twin")
        assert db.query_status("q").buckets in (1, 2, 3, 4)
    assert not check_database(tmp_path / "plant").problems


def run_and_kill(folder: Path, plant: Plant, seconds: float) -> None:
    """Let the database run until something was changed, and for so long after that."""
    changed, output = folder / "changed", folder / "output.log"
    changed.unlink(missing_ok=True)
    with output.open("ab") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.buckets_process", str(folder)],
            start_new_session=True,
            stdout=written,
            stderr=written,
        )
    try:
        wait_for(changed.exists, 120, said=output.read_text, alive=lambda: process.poll() is None)
        plant.load(20)
        time.sleep(seconds)
        assert process.poll() is None, output.read_text()[-3000:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
