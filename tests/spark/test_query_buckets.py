"""Queries go on in another number of buckets, with every result once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm


from nilometer.log.reader import LogReader

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
OWN = "WITH (engine = 'own')"
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
        found: Counter[tuple[Any, ...]] = Counter()
        for frame in log.read(log.start, log.end):
            columns = [frame.rows.column(name).to_pylist() for name in names]
            found.update(zip(*columns, strict=True))
        return found

    def wait(self, query: str, twin: str) -> None:
        """Both have told the same, up to the end."""

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


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_goes_on_in_other_numbers_of_buckets(
    query: str, db: nm.Database, tmp_path: Path
) -> None:
    plant = Plant(db, tmp_path, seed=len(query))
    plant.load()
    db.execute(f"CREATE QUERY twin AS {QUERIES[query]} FROM START")
    db.execute(f"CREATE QUERY q {OWN} AS {QUERIES[query]} FROM START")
    wait_for(lambda: db.query_status("q").result_rows > 0)
    for number in (3, 1):
        plant.load()
        db.execute(f"ALTER QUERY q SET (buckets = {number})")
        plant.load()
        plant.wait("q", "twin")
