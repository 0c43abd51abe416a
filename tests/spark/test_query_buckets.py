"""Queries go on in another number of buckets, with every result once."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.lifecycle import QueryLifecycle
from nilometer.database.query_status import QueryPhase
from nilometer.errors import NilometerError
from nilometer.log.reader import LogReader
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.upkeep.check import check_database
from tests.patience import wait_for

QUERIES = {
    "pairs": "SELECT A.v AS v, B.v AS w FROM A, B WINDOW(A, B) = 5 SECONDS WHERE A.k = B.k",
    "formatted": "SELECT format_string('%d', A.v + 0 * B.v) AS v, B.v AS w "
    "FROM A, B WINDOW(A, B) = 5 SECONDS WHERE A.k = B.k",
    "sliding": "SELECT k, COUNT(*) AS n, SUM(v) AS t, MEDIAN(v) AS m, COUNT(DISTINCT v % 3) AS d "
    "FROM A [RANGE 10 SECONDS] GROUP BY k",
    "tumbling": "SELECT window_start, k, COUNT(*) AS n, MAX(v) AS m "
    "FROM TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, k",
}
OTHERS = ("pairs", "formatted", "tumbling")
ROWS = 60


class Plant:
    """Two streams over files, and each query twice: one is changed, the other is not."""

    def __init__(self, db: nm.Database, folder: Path, seed: int) -> None:
        self.db = db
        self._files = {name: folder / f"{name}.jsonl" for name in "AB"}
        self._random = random.Random(seed)
        self.rows = 0
        for name, file in self._files.items():
            file.touch()
            db.execute(
                f"CREATE STREAM {name} (k INT, v INT, ts TIMESTAMP, TIME ts, HISTORY FOREVER) "
                f"FROM file WITH (address = '{file}', speed = 'max', follow = true)"
            )

    def load(self, rows: int = ROWS) -> None:
        """More rows, one for each second; those of the last seconds are not done."""
        for file in self._files.values():
            with file.open("a") as lines:
                for second in range(self.rows, self.rows + rows):
                    at = f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"
                    key = self._random.choice([0, 1, 2, 3, 4, 5, None])
                    row = {"k": key, "v": self._random.randrange(100), "ts": at}
                    lines.write(json.dumps(row) + "\n")
        self.rows += rows

    def answers(self, query: str) -> Counter[tuple[Any, ...]]:
        log = LogReader.open(self.db.log_of(query))
        names = [name for name in log.layout.shown.names if not name.startswith("_nilometer")]
        counts: Counter[tuple[Any, ...]] = Counter()
        for frame in log.read(log.start, log.end):
            columns = [frame.rows.column(name).to_pylist() for name in names]
            counts.update(zip(*columns, strict=True))
        return counts

    def wait(self, query: str, twin: str) -> None:
        """Both have given the same rows, up to the end."""

        def is_there() -> bool:
            reached = {one: self.db.query_status(one).watermark for one in (query, twin)}
            return (
                reached[query] is not None
                and reached[query] == reached[twin]
                and self.answers(query) == self.answers(twin)
            )

        def said() -> object:
            one, other = self.answers(query), self.answers(twin)
            return (
                f"{self.db.query_status(query).error} {self.db.query_status(query).watermark} "
                f"{self.db.query_status(twin).watermark} less {other - one} more {one - other}"
            )

        wait_for(is_there, 120, said=said)


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        yield opened


def started(plant: Plant, query: str) -> None:
    """A query that runs in two buckets, and its twin in the shared engine."""
    plant.load()
    plant.db.execute(f"CREATE QUERY twin AS {QUERIES[query]} FROM START")
    plant.db.execute(f"CREATE QUERY q WITH (buckets = 2) AS {QUERIES[query]} FROM START")
    wait_for(lambda: plant.db.query_status("q").result_rows > 0)
    assert plant.db.query_status("q").buckets == 2
    plant.load()


@pytest.mark.parametrize(
    "query", ["sliding", *(pytest.param(one, marks=pytest.mark.soak) for one in OTHERS)]
)
def test_a_query_goes_on_in_other_numbers_of_buckets(
    query: str, db: nm.Database, tmp_path: Path
) -> None:
    plant = Plant(db, tmp_path, seed=len(query))
    started(plant, query)
    for number in (3, 1):
        db.execute(f"ALTER QUERY q SET (buckets = {number})")
        assert db.query_status("q").buckets == number
        plant.load()
        plant.wait("q", "twin")


@pytest.mark.soak
def test_a_stopped_query_is_changed_twice_before_it_goes_on(
    db: nm.Database, tmp_path: Path
) -> None:
    plant = Plant(db, tmp_path, seed=3)
    started(plant, "sliding")
    db.execute("STOP QUERY q")
    db.execute("ALTER QUERY q SET (buckets = 5)")
    db.execute("ALTER QUERY q SET (buckets = 3)")
    assert db.query_status("q").phase != QueryPhase.RUNNING
    db.execute("START QUERY q")
    plant.load()
    plant.wait("q", "twin")


class Killed(BaseException):
    """What a killed process does not see."""


@pytest.mark.soak
@pytest.mark.parametrize("moment", ["before the catalog", "after the catalog", "half settled"])
def test_a_process_that_ends_in_between_leaves_one_number_or_the_other(
    moment: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nm.connect(spark, path=tmp_path / "plant") as db:
        plant = Plant(db, tmp_path, seed=5)
        started(plant, "sliding")
        with monkeypatch.context() as patch:
            die_at(moment, patch)
            with pytest.raises(Killed):
                db.execute("ALTER QUERY q SET (buckets = 3)")
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.resume()
        plant.db = db
        assert db.query_status("q").buckets == (2 if moment == "before the catalog" else 3)
        plant.load()
        plant.wait("q", "twin")
    assert not check_database(tmp_path / "plant").problems


def die_at(moment: str, patch: pytest.MonkeyPatch) -> None:
    """End the change of a query at a moment, and let nothing be done after it."""

    def die(*_: object) -> None:
        patch.setattr(QueryLifecycle, "begin", die)
        raise Killed

    keep = SensorCatalog.set_query_options

    def keep_and_die(self: SensorCatalog, name: str, options: Any) -> None:
        keep(self, name, options)
        die()

    def settle_half(checkpoint: Path, name: str) -> None:
        shutil.rmtree(checkpoint / "state")
        shutil.rmtree(checkpoint / "commits")
        die()

    if moment == "before the catalog":
        patch.setattr(SensorCatalog, "set_query_options", die)
    elif moment == "after the catalog":
        patch.setattr(SensorCatalog, "set_query_options", keep_and_die)
    else:
        patch.setattr("nilometer.spark.start_query.settle", settle_half)


def test_what_cannot_be_changed_says_what_to_do(db: nm.Database, tmp_path: Path) -> None:
    plant = Plant(db, tmp_path, seed=7)
    plant.load(5)
    db.execute(f"CREATE QUERY shared AS {QUERIES['pairs']} FROM START")
    with pytest.raises(NilometerError, match="one bucket") as refused:
        db.execute("ALTER QUERY shared SET (buckets = 4)")
    assert "WITH (buckets = 4)" in str(refused.value)
    over = "SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS before FROM A FROM START"
    db.execute(f"CREATE QUERY over_rows WITH (buckets = 2) AS {over}")
    with pytest.raises(NilometerError, match="cannot be changed"):
        db.execute("ALTER QUERY over_rows SET (buckets = 3)")
    assert db.query_status("over_rows").buckets == 2
    with pytest.raises(NilometerError, match="one bucket in the shared engine"):
        db.execute(f"CREATE QUERY q WITH (buckets = 2, engine = 'shared') AS {QUERIES['pairs']}")
    with pytest.raises(NilometerError, match="write a number from 1"):
        db.execute("ALTER QUERY over_rows SET (buckets = 0)")
