"""A database whose logs or catalog lie elsewhere: in an S3 store, at a file URI, in PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from tests.patience import wait_for
from tests.postgres import Postgres
from tests.s3_server import s3_server


def run_and_restart(spark: SparkSession, folder: Path, **places: str) -> list[str]:
    """A query over a stream, stopped in between, gives every row once; the logs' locations."""
    rows = [{"k": i, "ts": f"2026-01-31 12:00:{i:02d}"} for i in range(40)]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with nm.connect(spark, path=folder / "plant", **places) as db:
        db.sql(
            "CREATE STREAM A (k INT, ts TIMESTAMP, TIME ts, HISTORY FOREVER) FROM file "
            f"WITH (address = '{folder}/a.jsonl', speed = 'max')"
        )
        db.sql("CREATE QUERY evens AS SELECT k FROM A WHERE k % 2 = 0")
        wait_for(lambda: db.history("evens").count() == 20)
    with nm.connect(spark, path=folder / "plant", **places) as db:
        assert db.resume() == ["evens"]
        wait_for(lambda: bool(db.queries["evens"].recentProgress))
        found = sorted(row["k"] for row in db.history("evens").collect())
        assert found == list(range(0, 40, 2))
        assert db.history("A").where("k < 10").count() == 10
        assert [row["reader"] for row in db.sql("SHOW READERS FROM A").collect()] == ["evens"]
        logs = [db.log_of("A"), db.log_of("evens")]
        db.sql("DROP QUERY evens")
        db.sql("DROP STREAM A")
        assert db.sql("SHOW STREAMS").count() == 0
    return logs


@pytest.mark.soak
def test_logs_in_an_s3_store(spark: SparkSession, tmp_path: Path) -> None:
    with s3_server() as options:
        logs = f"s3://somebody:secret@plant/logs?{options}"
        found = run_and_restart(spark, tmp_path, logs=logs)
        assert found[0] == f"s3://somebody:secret@plant/logs/a?{options}"
    assert not (tmp_path / "plant" / "logs").exists()


def test_logs_at_a_file_uri(spark: SparkSession, tmp_path: Path) -> None:
    run_and_restart(spark, tmp_path, logs=f"file://{tmp_path}/all%20logs")
    assert (tmp_path / "all logs").exists()


def test_logs_in_a_folder_given_from_here(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with nm.connect(spark, path="plant", logs="logs") as db:
        db.sql("CREATE STREAM A (k INT) FROM file WITH (address = 'a.jsonl')")
        assert db.log_of("A") == str(tmp_path / "logs" / "a")


def test_a_catalog_in_postgresql(spark: SparkSession, tmp_path: Path, postgres: Postgres) -> None:
    run_and_restart(spark, tmp_path, catalog=postgres.new_database())
    assert not (tmp_path / "plant" / "catalog.sqlite").exists()
