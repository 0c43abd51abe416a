"""A database folder that is moved, copied or linked: queries go on, with every result once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.upkeep.backup import list_backups
from nilometer.upkeep.manifest import Manifest
from nilometer.upkeep.restore import restore_backup
from tests.patience import wait_for
from tests.spark.log_harness import rows_of

JOIN = "FROM A, B WINDOW(A, B) = 5 SECONDS WHERE A.k = B.k FROM START"
QUERIES = {
    "shared": f"CREATE QUERY shared AS SELECT A.v AS v, B.v AS w {JOIN}",
    "own": f"CREATE QUERY own WITH (engine = 'own') AS SELECT A.v AS v, B.v AS w {JOIN}",
    "by_spark": "CREATE QUERY by_spark AS "
    f"SELECT format_string('%d', A.v + 0 * B.v) AS v, B.v AS w {JOIN}",
}
ROWS = 20


class Plant:
    """Two streams over files outside of the database, and queries of every kind."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._files = {name: folder / f"{name}.jsonl" for name in "AB"}
        self.rows = 0

    @contextmanager
    def opened(self, home: str | Path) -> Iterator[nm.Database]:
        with nm.connect(self._spark, path=home) as db:
            db.resume()
            yield db

    def create(self, db: nm.Database) -> None:
        for name, file in self._files.items():
            file.touch()
            db.execute(
                f"CREATE STREAM {name} (k INT, v INT, ts TIMESTAMP, TIME ts, HISTORY FOREVER) "
                f"FROM file WITH (address = '{file}', speed = 'max', follow = true)"
            )
        for statement in QUERIES.values():
            db.execute(statement)

    def load(self) -> None:
        """More rows; those of the last seconds wait for partners among the next ones."""
        for file in self._files.values():
            with file.open("a") as lines:
                for v in range(self.rows, self.rows + ROWS):
                    at = f"2026-01-01T00:{v // 60:02d}:{v % 60:02d}Z"
                    lines.write(json.dumps({"k": v % 3, "v": v, "ts": at}) + "\n")
        self.rows += ROWS

    @property
    def expected(self) -> list[tuple[int, int]]:
        every = range(self.rows)
        return sorted((a, b) for a in every for b in every if abs(a - b) <= 5 and a % 3 == b % 3)

    def check(self, db: nm.Database) -> None:
        """All queries have every result once."""
        for query in QUERIES:

            def is_there(query: str = query) -> bool:
                return len(results(db, query)) >= len(self.expected)

            def said(query: str = query) -> object:
                return f"{query}: {db.query_status(query).error}"

            wait_for(is_there, 120, said=said)
            assert results(db, query) == self.expected, query


def results(db: nm.Database, query: str) -> list[tuple[int, int]]:
    rows = rows_of(db.log_of(query), ["v", "w"])
    return sorted((int(v), int(w)) for v, w in rows)


def identity(home: Path) -> str:
    return (home / "identity").read_text()


def test_a_database_goes_on_wherever_its_folder_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant(spark, tmp_path)
    first, second = tmp_path / "first", tmp_path / "deep" / "a b %41 ü"
    second.parent.mkdir()
    with plant.opened(first) as db:
        plant.create(db)
        plant.load()
        plant.check(db)
    known = identity(first)
    first.rename(second)
    plant.load()
    with plant.opened(second) as db:
        plant.check(db)
        assert not first.exists()
    assert identity(second) == known
    copy = tmp_path / "copy"
    shutil.copytree(second, copy)
    plant.load()
    with plant.opened(copy) as db:
        plant.check(db)
        rows = {query: len(rows_of(second / "logs" / query, ["v"])) for query in QUERIES}
        assert all(count < len(plant.expected) for count in rows.values()), "they are the copy's"
    assert identity(second) == known
    assert identity(copy) != known
    monkeypatch.chdir(tmp_path)
    os.symlink(second, "link")
    with plant.opened("link") as db:
        plant.check(db)
    assert identity(second) == known


def test_what_is_backed_up_while_queries_run_goes_on_from_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    plant = Plant(spark, tmp_path)
    first, backups = tmp_path / "first", str(tmp_path / "backups")
    with plant.opened(first) as db:
        plant.create(db)
        plant.load()
        plant.check(db)
        for _ in range(4):
            plant.load()
            db.back_up(backups)
        assert not list(first.glob(".backup-*"))
    made = list_backups(backups)
    assert len(made) == 4
    chosen = made[1]
    assert isinstance(chosen, Manifest)
    restored = tmp_path / "restored"
    restore_backup(backups, restored, chosen.name)
    plant.load()
    with plant.opened(restored) as db:
        plant.check(db)
    assert identity(restored) != identity(first)
