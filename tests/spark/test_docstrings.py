"""The examples in the docstrings of Database, and of connect."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database import database, open_database
from tests.docstrings import run_examples


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "farm") as opened:
        yield opened


def test_examples_run(
    db: nm.Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    df = spark.createDataFrame([(7, datetime(2026, 1, 31, tzinfo=UTC))], "k LONG, ts TIMESTAMP")
    for name in "AB":
        db.create_stream(name, df, time="ts")
    db.execute(
        "CREATE STREAM Readings (v DOUBLE) FROM http WITH (address = 'http://127.0.0.1:1/'); "
        "CREATE SENSOR TABLE Farm (name STRING, R STREAM(v DOUBLE) FROM synthetic); "
        "INSERT INTO Farm VALUES ('barn', '{}')"
    )
    names: dict[str, Any] = {"spark": spark, "df": df, "db": db}
    assert run_examples(database, names) == 15
    assert run_examples(open_database, names) == 1
