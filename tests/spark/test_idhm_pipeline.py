"""The application's SQL on Spark: the verdicts are those that the operators give by themselves."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from tests import idhm_pipeline as small
from tests.patience import LONG


def test_verdicts_are_those_of_the_operators(spark: SparkSession) -> None:
    db = nm.connect(spark)
    for name, rows in small.tables().items():
        db.create_table(name, spark.createDataFrame(rows))
    for name, detectors in (("Near", [1, 2]), ("Remote", [3])):
        db.create_stream(name, spark.createDataFrame(small.readings(detectors)), time="at")
    answer: pa.Table = db.sql(small.query("verdicts")).drop("counts").toArrow()
    verdicts = small.verdicts_of(answer.to_pylist())
    expected = small.expected_verdicts()
    assert verdicts.keys() == expected.keys()
    for key, (exposure, verdict, suspicion, lines) in expected.items():
        assert verdicts[key] == (exposure, verdict, pytest.approx(suspicion), lines)


@pytest.mark.soak
@pytest.mark.limit(600)
def test_the_demo_decides_boxes_and_says_nothing_else() -> None:
    command = [sys.executable, "-m", "nilometer", "demo", "idhm", "--seconds", "60"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG)
    lines = ended.stdout.splitlines()
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert any("&next=/console/idhm" in line for line in lines)
    decided = next(line for line in lines if line.startswith("boxes decided"))
    assert int(decided.split()[-1]) == sum(line.startswith("box ") for line in lines) > 0
