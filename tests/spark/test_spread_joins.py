"""Running queries whose hot keys are spread: all results once, by the work of several buckets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database import auto_spread, spread
from nilometer.errors import NilometerError
from nilometer.log.reader import LogReader
from nilometer.upkeep.check import check_database
from tests.patience import wait_for
from tests.spark.test_query_buckets import Killed, die_at

BUCKETS = 4
SECONDS = 2_000
PAIRS = "SELECT A.k, A.v, B.v AS w FROM A, B WINDOW(A, B) = 5 SECONDS WHERE A.k = B.k"
COUNTS = (
    "SELECT A.k, COUNT(*) AS n, SUM(A.v * B.v) AS s "
    "FROM A, B WINDOW(A, B) = 5 SECONDS WHERE A.k = B.k GROUP BY A.k"
)
ORACLE = (
    "SELECT a.k, a.v, b.v AS w, greatest(a.second, b.second) AS second "
    "FROM a JOIN b ON a.k = b.k AND abs(a.second - b.second) <= 5"
)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Plant:
    """Two streams over files; nine of ten rows have the key 7."""

    def __init__(self, db: nm.Database, folder: Path) -> None:
        self.db = db
        self._files = {name: folder / f"{name}.jsonl" for name in "AB"}
        self.seconds = 0
        for name, file in self._files.items():
            file.touch()
            db.execute(
                f"CREATE STREAM {name} (k INT, v INT, ts TIMESTAMP, TIME ts, HISTORY FOREVER) "
                f"FROM file WITH (address = '{file}', speed = 'max', follow = true)"
            )

    @staticmethod
    def row(name: str, second: int) -> tuple[int, int]:
        return 7 if second % 10 else second % 97, second * (31 if name == "A" else 17) % 1009

    def load(self, seconds: int) -> None:
        """A row of each stream for each of so many seconds more."""
        for name, file in self._files.items():
            with file.open("a") as lines:
                for second in range(self.seconds, self.seconds + seconds):
                    key, value = self.row(name, second)
                    at = (BEGIN + timedelta(seconds=second)).isoformat()
                    lines.write(json.dumps({"k": key, "v": value, "ts": at}) + "\n")
        self.seconds += seconds

    def rows(self, query: str) -> Counter[tuple[Any, ...]]:
        log = LogReader.open(self.db.log_of(query))
        names = [name for name in log.layout.shown.names if not name.startswith("_nilometer")]
        counts: Counter[tuple[Any, ...]] = Counter()
        for frame in log.read(log.start, log.end):
            columns = [frame.rows.column(name).to_pylist() for name in names]
            counts.update(zip(*columns, strict=True))
        return counts

    def due(self) -> Counter[tuple[Any, ...]]:
        """The pairs, as DuckDB finds them."""
        with duckdb.connect() as other:
            for name in "ab":
                other.execute(f"CREATE TABLE {name} (second INT, k INT, v INT)")
                rows = [(n, *self.row(name.upper(), n)) for n in range(self.seconds)]
                other.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
            pairs = other.execute(ORACLE).fetchall()
        return Counter((*row, BEGIN + timedelta(seconds=second)) for *row, second in pairs)

    def wait_for_pairs(self, query: str) -> None:
        due = self.due()

        def said() -> object:
            status, stored = self.db.query_status(query), self.rows(query)
            less, more = (due - stored).total(), (stored - due).total()
            return f"{status.error} {status.watermark} of {due.total()}: {less} less, {more} more"

        wait_for(lambda: self.rows(query) == due, 120, said=said)

    def wait_for_twin(self, query: str, twin: str) -> None:
        """Both have given the same rows, up to the end."""

        def is_there() -> bool:
            reached = {one: self.db.query_status(one).watermark for one in (query, twin)}
            return reached[query] == reached[twin] and self.rows(query) == self.rows(twin)

        wait_for(is_there, 120, said=lambda: self.db.query_status(query).error)


@pytest.fixture
def plant(spark: SparkSession, tmp_path: Path) -> Iterator[Plant]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", BUCKETS)
    with nm.connect(spark, path=tmp_path / "plant") as db:
        yield Plant(db, tmp_path)
    spark.conf.set("spark.sql.shuffle.partitions", before)


def explained(db: nm.Database, query: str) -> str:
    plan = db.execute(f"EXPLAIN QUERY {query}").rows
    assert plan is not None
    return "\n".join(plan.column("plan").to_pylist())


def test_a_hot_key_is_the_work_of_all_buckets(plant: Plant) -> None:
    plant.load(SECONDS)
    db = plant.db
    db.execute(f"CREATE QUERY one WITH (engine = 'own') AS {PAIRS} FROM START")
    plant.wait_for_pairs("one")
    wait_for(lambda: sum(one.rows for one in db.query_status("one").spreads) == 2 * SECONDS)
    [spread] = db.query_status("one").spreads
    assert spread.key == "k = 7"
    assert spread.fullest > 0.85
    db.execute("STOP QUERY one")
    db.execute(f"CREATE QUERY many WITH (spread = 4, spread_stream = 'b') AS {PAIRS} FROM START")
    plant.wait_for_pairs("many")
    wait_for(lambda: sum(one.rows for one in db.query_status("many").spreads) == 5 * SECONDS)
    [spread] = db.query_status("many").spreads
    assert spread.fullest < 0.3
    plan = explained(db, "many")
    assert "a grid of 1 x 4: the rows of B with the same key are spread over 4" in plan
    assert "replicated to several buckets: A 4 times" in plan
    assert "Engine: own" in plan


def test_a_running_query_is_spread_and_put_together_again(plant: Plant) -> None:
    db = plant.db
    plant.load(300)
    db.execute(f"CREATE QUERY q WITH (engine = 'own') AS {PAIRS} FROM START")
    wait_for(lambda: db.query_status("q").result_rows > 0)
    plant.load(300)
    for said, grid in (
        ("spread = 4", "1 x 4"),
        ("spread = 2, spread_stream = 'B', buckets = 6", "3 x 2"),
        ("spread = 1", None),
    ):
        db.execute(f"ALTER QUERY q SET ({said})")
        plan = explained(db, "q")
        assert f"a grid of {grid}" in plan if grid else "grid" not in plan
        plant.load(300)
        plant.wait_for_pairs("q")


@pytest.mark.soak
@pytest.mark.parametrize("moment", ["before the catalog", "after the catalog", "half settled"])
def test_a_process_that_ends_in_between_leaves_one_spread_or_the_other(
    moment: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nm.connect(spark, path=tmp_path / "plant") as db:
        plant = Plant(db, tmp_path)
        plant.load(300)
        db.execute(f"CREATE QUERY q WITH (buckets = 4) AS {PAIRS} FROM START")
        wait_for(lambda: db.query_status("q").result_rows > 0)
        plant.load(300)
        with monkeypatch.context() as patch:
            die_at(moment, patch)
            with pytest.raises(Killed):
                db.execute("ALTER QUERY q SET (spread = 4)")
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.resume()
        plant.db = db
        assert ("a grid of 1 x 4" in explained(db, "q")) == (moment != "before the catalog")
        plant.load(300)
        plant.wait_for_pairs("q")
    assert not check_database(tmp_path / "plant").problems


def test_answers_over_a_spread_join_come_once(plant: Plant) -> None:
    db = plant.db
    plant.load(300)
    db.execute(f"CREATE QUERY twin AS {COUNTS} FROM START")
    db.execute(f"CREATE QUERY q WITH (spread = 1) AS {COUNTS} FROM START")
    wait_for(lambda: db.query_status("q").result_rows > 0)
    plant.load(100)
    db.execute("ALTER QUERY q SET (spread = 2)")
    plant.load(100)
    plant.wait_for_twin("q", "twin")
    db.execute("ALTER QUERY q SET (spread = 4)")
    plant.load(100)
    plant.wait_for_twin("q", "twin")


def test_what_cannot_be_spread_says_what_to_do(plant: Plant, spark: SparkSession) -> None:
    db = plant.db
    plant.load(5)
    for said, why in (
        (f"CREATE QUERY q WITH (spread = 3) AS {PAIRS}", "4 buckets cannot be split into 3 parts"),
        (f"CREATE QUERY q WITH (spread = 4, engine = 'shared') AS {PAIRS}", "leave out spread"),
        (f"CREATE QUERY q WITH (spread_stream = 'A') AS {PAIRS}", "give spread as well"),
        (
            f"CREATE QUERY q WITH (spread = 2, spread_stream = 'C') AS {PAIRS}",
            "C does not take part",
        ),
        (f"CREATE QUERY q WITH (spread = 'much') AS {PAIRS}", "or 'auto'"),
        (
            "CREATE QUERY q WITH (spread = 2) AS "
            "SELECT A.k FROM A [RANGE 5 SECONDS], B [ROWS 3] WHERE A.k = B.k",
            "a ROWS window needs all rows of a key",
        ),
    ):
        with pytest.raises(NilometerError) as refused:
            db.execute(said)
        assert why in str(refused.value)
    assert not db.queries
    db.execute(f"CREATE QUERY shared AS {PAIRS}")
    with pytest.raises(NilometerError, match="one bucket") as refused:
        db.execute("ALTER QUERY shared SET (spread = 4)")
    assert "WITH (spread = 4)" in str(refused.value)
    db.execute(f"CREATE QUERY counts WITH (engine = 'own') AS {COUNTS}")
    with pytest.raises(NilometerError, match="process each key in a single bucket") as refused:
        db.execute("ALTER QUERY counts SET (spread = 2)")
    assert "WITH (buckets = 4, spread = 2)" in str(refused.value)
    db.execute("STOP QUERY counts")
    rate = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "1 AS k", "2 AS v")
    db.create_stream("I", rate, time="ts", idle="5s")
    idle = COUNTS.replace("B WINDOW", "I B WINDOW")
    with pytest.raises(NilometerError, match="it reads a stream with `idle`") as refused:
        db.execute(f"CREATE QUERY idle WITH (spread = 'auto') AS {idle}")
    assert "a number instead of 'auto'" in str(refused.value)
    assert "idle" not in db.queries
    db.execute(f"CREATE QUERY idle WITH (spread = 2) AS {idle}")
    with pytest.raises(NilometerError, match="it reads a stream with `idle`"):
        db.execute("ALTER QUERY idle SET (spread = 4)")


def test_a_hot_key_is_spread_by_itself(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """With keys that count as hot sooner than usual."""
    monkeypatch.setattr(spread, "_BUSY", 1.0)
    monkeypatch.setattr(auto_spread, "LASTS", 1_000_000)
    db = plant.db
    plant.load(1_000)
    db.execute(f"CREATE QUERY hand WITH (engine = 'own') AS {PAIRS} FROM START")
    db.execute(f"CREATE QUERY q WITH (spread = 'auto') AS {PAIRS} FROM START")
    assert "Spread: automatic: no key is spread" in explained(db, "q")
    wait_for(lambda: "spread = 4" in str(db.query_status("hand").remedy))
    assert "ALTER QUERY hand SET (spread = 4)" in explained(db, "hand")
    db.execute("STOP QUERY hand")
    words = "automatic: rows of A with the same key are in 4 buckets"
    wait_for(lambda: db.query_status("q").spread_text == words, 60)
    assert f"Spread: {words}" in explained(db, "q")
    assert "a grid of 1 x 4" in explained(db, "q")
    shown = db.execute("SHOW QUERIES").rows
    assert shown is not None
    assert shown.column("spread").to_pylist() == [None, words]
    plant.load(200)
    plant.wait_for_pairs("q")
    db.execute("ALTER QUERY q SET (spread = 2)")
    assert db.query_status("q").spread_text == "rows of A with the same key are in 2 buckets"
    db.execute("ALTER QUERY hand SET (spread = 'auto')")
    assert db.query_status("hand").spread_text == "automatic: no key is spread"
    plant.load(100)
    plant.wait_for_pairs("q")
