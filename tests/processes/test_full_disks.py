"""Disks without room, real ones: nothing acknowledged is lost, and all goes on when there is room.

What has no room: a stream's log, a query's results and checkpoint, and the catalog.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.query_status import EngineChoice, QueryLimits
from nilometer.errors import CatalogError
from tests.patience import wait_for
from tests.small_disk import SmallDisk, small_disk
from tests.spark.log_harness import rows_of
from tests.spark.test_query_lifecycle import results, write_rows

ROWS = 2000
PAIRS = "SELECT X.v AS v FROM A X, A Y WINDOW = 1 HOUR WHERE X.v = Y.v FROM START"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 64) as mounted:
        yield mounted


def begin(db: nm.Database, file: Path, engine: EngineChoice | None = None) -> None:
    """A stream over a file that is followed, and a query that has all of its rows."""
    write_rows(file, range(ROWS))
    db.execute(
        "CREATE STREAM A (k INT, v INT, HISTORY FOREVER) FROM file "
        f"WITH (address = '{file}', speed = 'max', follow = true)"
    )
    db.create_query("pairs", PAIRS, limits=QueryLimits(engine=engine))
    wait_for(lambda: results(db, "pairs") == list(range(ROWS)))


def create_tables(db: nm.Database, count: int) -> None:
    for number in range(count):
        db.execute(f"CREATE TABLE T{number} (v INT)")


def stored(db: nm.Database) -> list[int]:
    return sorted(v for (v,) in rows_of(db.log_of("A"), ["v"]))


def test_everything_is_on_a_disk_that_gets_full(
    spark: SparkSession, tmp_path: Path, disk: SmallDisk
) -> None:
    file = tmp_path / "a.jsonl"
    with nm.connect(spark, path=disk.folder / "plant") as db:
        begin(db, file)

        disk.fill()
        write_rows(file, range(ROWS, 2 * ROWS))
        with pytest.raises(CatalogError, match="the catalog cannot be used"):
            create_tables(db, 1000)
        error = wait_for(lambda: db.streams()[0].error or db.query_status("pairs").error)
        assert "No space left on device" in error or "full" in error, error
        assert stored(db) == list(range(len(stored(db))))
        assert set(results(db, "pairs")) >= set(range(ROWS))

        disk.empty()
        wait_for(lambda: stored(db) == list(range(2 * ROWS)))
        wait_for(lambda: results(db, "pairs") == list(range(2 * ROWS)), 120)
        wait_for(lambda: db.query_status("pairs").error is None, 120)
        assert db.execute("CREATE TABLE Again (v INT)").message == "created table Again"


def test_a_disk_that_is_full_when_a_database_is_closed_and_opened(
    spark: SparkSession, tmp_path: Path, disk: SmallDisk
) -> None:
    file = tmp_path / "a.jsonl"
    with nm.connect(spark, path=disk.folder / "plant") as db:
        begin(db, file)
        disk.fill()
        write_rows(file, range(ROWS, 2 * ROWS))
    disk.empty()
    with nm.connect(spark, path=disk.folder / "plant") as db:
        db.resume()
        wait_for(lambda: results(db, "pairs") == list(range(2 * ROWS)), 120)
        assert stored(db) == list(range(2 * ROWS))


@pytest.mark.parametrize(
    ("what", "engine"),
    [("engine", None), ("checkpoints", EngineChoice.OWN), ("logs", None)],
)
def test_a_part_of_a_database_is_on_a_disk_that_gets_full(
    spark: SparkSession, tmp_path: Path, disk: SmallDisk, what: str, engine: EngineChoice | None
) -> None:
    plant, file = tmp_path / "plant", tmp_path / "a.jsonl"
    plant.mkdir()
    (plant / what).symlink_to(disk.folder / what)
    (disk.folder / what).mkdir()
    with nm.connect(spark, path=plant) as db:
        begin(db, file, engine)
        disk.fill()
        write_rows(file, range(ROWS, 2 * ROWS))
        wait_for(lambda: db.streams()[0].error or db.query_status("pairs").error)
        disk.empty()
        wait_for(lambda: results(db, "pairs") == list(range(2 * ROWS)), 120)
        assert stored(db) == list(range(2 * ROWS))
    shutil.rmtree(plant, ignore_errors=True)
