"""Queries after a power cut: files of Spark's checkpoint are cut off or gone, results are not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.query_status import EngineChoice, QueryLimits
from nilometer.spark.versions import CHECKPOINT_FILES
from tests.patience import wait_for
from tests.spark.test_query_lifecycle import declare, results, write_rows

ROWS = 200
PAIRS = "SELECT X.v AS v FROM A X, A Y WINDOW = 1 HOUR WHERE X.v = Y.v FROM START"


def numbered(folder: Path) -> list[Path]:
    return sorted(
        (one for one in folder.iterdir() if one.name.isdecimal()), key=lambda one: int(one.name)
    )


def newest(folder: Path, pattern: str) -> list[Path]:
    """The newest file of a kind of each bucket's state."""
    by_folder: dict[Path, Path] = {}
    for one in folder.rglob(pattern):
        before = by_folder.get(one.parent)
        if before is None or int(one.name.split(".")[0]) > int(before.name.split(".")[0]):
            by_folder[one.parent] = one
    return list(by_folder.values())


def lose(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lose_and_plan(file: Path) -> None:
    """Lose a file of the state when Spark has planned another micro-batch already."""
    file.unlink()
    checkpoint = file.parents[3]
    last = max(int(one.name) for one in numbered(checkpoint / "commits"))
    planned = checkpoint / "offsets" / str(last + 1)
    if not planned.exists():
        shutil.copy(checkpoint / "offsets" / str(last), planned)


Damage = Callable[[Path], None]
PLANS = [
    *((f"offsets, {one.__name__}", "offsets", one) for one in (lose, empty, cut)),
    *((f"commits, {one.__name__}", "commits", one) for one in (lose, empty)),
    ("metadata, empty", "metadata", empty),
    *((f"changes of state, {one.__name__}", "*.changelog", one) for one in (lose, empty, cut)),
    ("changes of state, lost while another batch was planned", "*.changelog", lose_and_plan),
    ("snapshots of state, cut", "*.zip", cut),
]


def damage(checkpoint: Path, kind: str, how: Damage) -> int:
    """Damage the newest files of a kind; how many there were."""
    if kind == "metadata":
        files = [checkpoint / kind]
    elif kind in ("offsets", "commits"):
        files = numbered(checkpoint / kind)[-1:]
    else:
        files = newest(checkpoint / "state", kind)
    for one in files:
        how(one)
    return len(files)


@pytest.fixture(scope="module")
def plant(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A database with a query that has run, and a copy of it as it was when it was closed."""
    folder = tmp_path_factory.mktemp("power")
    with nm.connect(spark, path=folder / "plant") as db:
        file = declare(db, folder, ROWS)
        db.create_query("pairs", PAIRS, limits=QueryLimits(engine=EngineChoice.OWN))
        for batch in range(2, 5):
            wait_for(lambda: len(results(db, "pairs")) == (batch - 1) * ROWS)  # noqa: B023
            write_rows(file, range((batch - 1) * ROWS, batch * ROWS))
        wait_for(lambda: len(results(db, "pairs")) == 4 * ROWS)
    shutil.copytree(folder / "plant", folder / "copy")
    return folder, file


@pytest.mark.parametrize(("kind", "how"), [one[1:] for one in PLANS], ids=[o[0] for o in PLANS])
def test_every_result_is_there_once_or_the_query_says_what_is_wrong(
    spark: SparkSession, plant: tuple[Path, Path], kind: str, how: Damage
) -> None:
    folder, file = plant
    shutil.rmtree(folder / "plant")
    shutil.copytree(folder / "copy", folder / "plant")
    lines = file.read_text().splitlines(keepends=True)
    checkpoint = folder / "plant" / "checkpoints" / "pairs"
    assert damage(checkpoint, kind, how)
    expected = list(range(len(lines) + ROWS))
    with nm.connect(spark, path=folder / "plant") as db:
        db.resume()
        write_rows(file, range(len(lines), len(lines) + ROWS))
        wait_for(lambda: results(db, "pairs") == expected or db.query_status("pairs").failures > 0)
        if db.query_status("pairs").failures:
            error = str(db.query_status("pairs").error)
            assert error.startswith("the state of the query cannot be loaded"), error
            assert "drop the query and create it again" in error
            assert results(db, "pairs") == list(range(len(results(db, "pairs"))))
            assert kind == "*.zip"
        else:
            assert results(db, "pairs") == expected


def test_a_repeated_micro_batch_leaves_no_state_of_its_first_attempt(
    spark: SparkSession, plant: tuple[Path, Path]
) -> None:
    """One bucket had written its state when the power went, another one had not."""
    folder, file = plant
    shutil.rmtree(folder / "plant")
    shutil.copytree(folder / "copy", folder / "plant")
    rows = len(file.read_text().splitlines())
    checkpoint = folder / "plant" / "checkpoints" / "pairs"
    lose(numbered(checkpoint / "commits")[-1])
    first, *_ = sorted(newest(checkpoint / "state", "*.changelog"))
    lose(first)
    for _ in range(2):  # the second time all state is read from the files
        with nm.connect(spark, path=folder / "plant") as db:
            db.resume()
            write_rows(file, range(rows, rows + ROWS))
            rows += ROWS
            expected = list(range(rows))

            def is_over(db: nm.Database = db, expected: list[int] = expected) -> bool:
                error = str(db.query_status("pairs").error)
                return "damaged or missing" in error or results(db, "pairs") == expected

            wait_for(is_over)
            assert results(db, "pairs") == expected, db.query_status("pairs").error


def test_spark_replaces_a_file_of_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """If it did not, a micro-batch that is repeated would keep the state of its first attempt."""
    manager: Any = reduce(getattr, CHECKPOINT_FILES.split("."), spark._jvm)
    assert spark._jvm is not None
    path = spark._jvm.org.apache.hadoop.fs.Path
    files = manager(path(str(tmp_path)), spark._jsparkSession.sessionState().newHadoopConf())
    for content in ("first", "second"):
        output = files.createAtomic(path(f"{tmp_path}/1.changelog"), True)
        output.write(bytearray(content.encode()))
        output.close()
    assert (tmp_path / "1.changelog").read_text() == "second"
    assert {one.name for one in tmp_path.iterdir()} == {"1.changelog", ".1.changelog.crc"}
