"""A database whose logs or catalog lie elsewhere: in an S3 store, at a file URI, in PostgreSQL."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app
from nilometer.errors import InputError, LogError
from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.reader import LogReader
from tests.patience import wait_for
from tests.postgres import Postgres
from tests.s3_server import S3_ENVIRONMENT, outage, s3_server


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
        keys = sorted(row["k"] for row in db.history("evens").collect())
        assert keys == list(range(0, 40, 2))
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
        locations = run_and_restart(spark, tmp_path, logs=logs)
        assert locations[0] == f"s3://somebody:secret@plant/logs/a?{options}"
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


@pytest.mark.soak
def test_logs_move_to_an_s3_store_and_queries_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    plant = tmp_path / "plant"
    with nm.connect(spark, path=plant) as db:
        create_queries(db)
    with s3_server() as options:
        logs = f"s3://plant/logs?{options}"
        assert run_command("move-logs", str(plant), logs).endswith("delete them when all is well\n")
        (plant / "logs").rename(tmp_path / "old logs")
        with nm.connect(spark, path=plant) as db:
            assert db.log_of("A") == f"s3://plant/logs/a?{options}"
            assert counted(db) == [40, 20, 10, 4]
            db.resume()
            add_rows(db, range(40, 80))
            wait_for_results(db)
        with pytest.raises(InputError, match="the logs of the database .* are elsewhere"):
            nm.connect(spark, path=plant, logs=str(tmp_path / "new"))
        back = tmp_path / "back"
        run_command("move-logs", str(plant), str(back))
        with nm.connect(spark, path=plant) as db:
            assert counted(db) == [80, 40, 20, 8]


@pytest.mark.soak
def test_an_outage_of_the_store_is_waited_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3_server() as options:
        logs = f"s3://plant/logs?{options}"
        with nm.connect(spark, path=tmp_path / "plant", logs=logs) as db:
            create_queries(db)
            with outage(options):
                with pytest.raises(LogError):
                    add_rows(db, range(40, 80))
                wait_for(lambda: all(one.error for one in db.query_statuses()))
                errors = [str(one.error) for one in db.query_statuses()]
                assert all("plant" in one for one in errors), errors
            db._stored.parts.home.manager._watched["A"].stream.store.writer.repair()
            add_rows(db, range(40, 80))
            wait_for_results(db)


@pytest.mark.soak
def test_rows_on_the_disk_wait_for_an_outage_to_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    plant = tmp_path / "plant"
    with s3_server() as options:
        with nm.connect(spark, path=plant, logs=f"s3://plant/logs?{options}") as db:
            create_queries(db, " WITH (durability = 'disk', ship_every = '500ms')")
            with outage(options):
                for first in range(40, 60, 2):
                    add_rows(db, range(first, first + 2))
                shown = db.sql("SHOW STREAMS").collect()[0]
                assert (shown["durability"], shown["unshipped"]) == ("disk", 20)
            wait_for(lambda: counted(db, "A") == [60], 120)
            with outage(options):
                for first in range(60, 80, 2):
                    add_rows(db, range(first, first + 2))
        with nm.connect(spark, path=plant) as db:
            assert counted(db, "A") == [80]
            db.resume()
            wait_for_results(db)


def create_queries(db: nm.Database, options: str = "") -> None:
    """Queries of both engines, and one over another, that have taken forty rows."""
    db.sql(f"CREATE STREAM A (k BIGINT, HISTORY FOREVER) FROM http{options}")
    db.sql("CREATE QUERY evens AS SELECT k FROM A WHERE k % 2 = 0")
    db.sql("CREATE QUERY pairs AS SELECT k FROM evens WHERE k % 4 = 0")
    db.sql("CREATE QUERY own WITH (engine = 'own') AS SELECT k FROM A WHERE k % 10 = 0")
    add_rows(db, range(40))
    wait_for(lambda: counted(db) == [40, 20, 10, 4], 120, said=lambda: str(counted(db)))


def counted(db: nm.Database, *names: str) -> list[int]:
    """How many rows the logs of these have, or of all."""
    logs = map(db.log_of, names or ("A", "evens", "pairs", "own"))
    return [LogReader.open(log).end.row for log in logs]


def wait_for_results(db: nm.Database) -> None:
    """Until the queries have every result of eighty rows, once."""
    wait_for(lambda: counted(db) == [80, 40, 20, 8], 120, said=lambda: str(counted(db)))
    for name, step in (("evens", 2), ("pairs", 4), ("own", 10)):
        keys = sorted(row["k"] for row in db.history(name).collect())
        assert keys == list(range(0, 80, step))


def add_rows(db: nm.Database, numbers: range) -> None:
    now = time.time_ns() // 1000
    times = pa.array([now + one for one in numbers], pa.int64()).cast(TIMESTAMP)
    rows = pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), times], names=["k", TIME])
    store = db._stored.parts.home.manager._watched["A"].stream.store
    (store.ahead or store.writer).append(rows)


def run_command(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.soak
def test_a_copy_of_catalog_logs_and_folder_goes_on(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps that the docs name for what `nilometer backup` refuses."""
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    plant, catalog = tmp_path / "plant", postgres.new_database()

    def wait_for_rows(db: nm.Database, *wanted: int) -> None:
        names = ("A", "evens")
        wait_for(
            lambda: counted(db, *names) == [*wanted], 120, said=lambda: str(counted(db, *names))
        )

    with s3_server() as options:
        logs = f"s3://plant/logs?{options}"
        with nm.connect(spark, path=plant, catalog=catalog, logs=logs) as db:
            db.sql("CREATE STREAM A (k BIGINT, HISTORY FOREVER) FROM http")
            db.sql("CREATE QUERY evens AS SELECT k FROM A WHERE k % 2 = 0")
            add_rows(db, range(40))
            wait_for_rows(db, 40, 20)
        dump = copied(postgres, plant, tmp_path / "backup", catalog, options)
        with nm.connect(spark, path=plant, catalog=catalog) as db:  # it goes on, and is lost
            db.resume()
            add_rows(db, range(40, 50))
            wait_for_rows(db, 50, 25)
        shutil.rmtree(plant)
        again = restored(postgres, plant, tmp_path / "backup", dump, options)
        assert "everything is intact" in run_command("check", str(plant), "--catalog", again)
        with nm.connect(spark, path=plant, catalog=again) as db:
            assert counted(db, "A", "evens") == [40, 20]
            db.resume()
            add_rows(db, range(40, 80))
            wait_for_rows(db, 80, 40)
            keys = sorted(row["k"] for row in db.history("evens").collect())
            assert keys == list(range(0, 80, 2))


def copied(postgres: Postgres, plant: Path, to: Path, catalog: str, options: str) -> str:
    """Copy the folder, and the objects of the logs; the text of the catalog."""
    shutil.copytree(plant, to / "plant")
    store, folder = fs.FileSystem.from_uri(f"s3://plant/logs?{options}")
    fs.copy_files(folder, str(to / "logs"), source_filesystem=store)
    return postgres.program("pg_dump", "--no-owner", "--table", "nilometer_*", catalog)


def restored(postgres: Postgres, plant: Path, backup: Path, dump: str, options: str) -> str:
    """Put everything back; the URL of a new catalog."""
    store, folder = fs.FileSystem.from_uri(f"s3://plant/logs?{options}")
    store.delete_dir_contents(folder)
    fs.copy_files(str(backup / "logs"), folder, destination_filesystem=store)
    shutil.copytree(backup / "plant", plant)
    catalog = postgres.new_database()
    postgres.program("psql", "--quiet", "--set", "ON_ERROR_STOP=1", catalog, given=dump)
    return catalog
