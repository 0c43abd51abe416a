"""ALTER and CREATE OR REPLACE with queries at work, in the shared engine and in their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import SqlError
from nilometer.log.registrations import registrations
from tests.patience import wait_for
from tests.spark.log_harness import rows_of

ROWS = 100


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        yield opened


def declare(db: nm.Database, file: Path) -> None:
    """A stream over a file that is followed, with some rows."""
    write(file, range(ROWS))
    db.execute(
        "CREATE STREAM A (k INT, v INT, HISTORY FOREVER) FROM file "
        f"WITH (address = '{file}', speed = 'max', follow = true)"
    )


def write(file: Path, numbers: range, **more: object) -> None:
    with file.open("a") as lines:
        lines.writelines(json.dumps({"k": n % 7, "v": n, **more}) + "\n" for n in numbers)


def results(db: nm.Database, query: str, *columns: str) -> list[tuple[object, ...]]:
    return sorted(rows_of(db.log_of(query), list(columns)))


def behind(db: nm.Database) -> dict[str, int | None]:
    """How many rows each query has not read."""
    shown = db.execute("SHOW QUERIES").rows.to_pylist()
    return {one["name"]: one["rows_behind"] for one in shown}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("engine", ["shared", "own"])
def test_queries_go_on_while_their_stream_changes(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    file = tmp_path / "a.jsonl"
    with nm.connect(spark, path=tmp_path / "plant") as db:
        declare(db, file)
        db.execute(f"CREATE QUERY old WITH (engine = '{engine}') AS SELECT * FROM A FROM START")
        db.execute(
            f"CREATE QUERY pairs WITH (engine = '{engine}') AS SELECT X.v AS v FROM A X, A Y "
            "WINDOW = 1 HOUR WHERE X.v = Y.v FROM START"
        )
        wait_for(lambda: len(results(db, "old", "v")) == ROWS)
        said = db.execute("ALTER STREAM A ADD COLUMN unit STRING").message
        assert said == "stream A altered"
        write(file, range(ROWS, 2 * ROWS), unit="C")
        wait_for(lambda: len(results(db, "old", "v")) == 2 * ROWS)
        db.execute(
            f"CREATE QUERY new WITH (engine = '{engine}') AS SELECT * FROM A WHERE v >= 50 "
            "FROM START"
        )
        wait_for(lambda: len(results(db, "new", "v")) == 2 * ROWS - 50)
        units = dict(rows_of(db.log_of("new"), ["v", "unit"]))
        assert units == {v: None if v < ROWS else "C" for v in range(50, 2 * ROWS)}
        with pytest.raises(SqlError, match="column unit of A is read by query new"):
            db.execute("ALTER STREAM A RENAME COLUMN unit TO u")
        with pytest.raises(SqlError, match="column k of A is read by query new, query old"):
            db.execute("ALTER STREAM A DROP COLUMN k")
        db.execute("DROP QUERY new")
        db.execute("ALTER STREAM A DROP COLUMN unit")
        db.execute("ALTER STREAM A SET (lateness = '1 second', idle = '2 seconds')")
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.resume()
        write(file, range(2 * ROWS, 3 * ROWS), unit="F")
        wait_for(lambda: len(results(db, "old", "v")) == 3 * ROWS)
        assert results(db, "old", "v", "k") == [(v, v % 7) for v in range(3 * ROWS)]
        wait_for(lambda: len(results(db, "pairs", "v")) == 3 * ROWS)
        assert results(db, "pairs", "v") == [(v,) for v in range(3 * ROWS)]
        shown = db.execute("SHOW STREAMS").rows.to_pylist()[0]
        assert (shown["lateness"], shown["idle"]) == ("1s", "2s")
        wait_for(lambda: behind(db) == {"old": 0, "pairs": 0}, said=lambda: behind(db))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("engine", ["shared", "own"])
def test_a_query_is_replaced_and_renamed_while_it_runs(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    file = tmp_path / "a.jsonl"
    with nm.connect(spark, path=tmp_path / "plant") as db:
        declare(db, file)
        create = f"CREATE OR REPLACE QUERY q WITH (engine = '{engine}') AS"
        assert db.execute(f"{create} SELECT v FROM A WHERE v < 10 FROM START").message == (
            "query q created and started"
        )
        wait_for(lambda: len(results(db, "q", "v")) == 10)
        said = db.execute(f"{create} select v FROM A WHERE v < 10 /* few */ from START").message
        assert said == "query q already has this text, and keeps running"
        log = db.log_of("q")
        db.execute(f"{create} SELECT v + 1 AS w FROM A WHERE v >= 10")
        wait_for(lambda: [one.name for one in db.query_statuses()] == ["q"])
        wait_for(lambda: len(results(db, "q", "w")) == ROWS - 10)
        assert db.log_of("q") != log
        assert not Path(log).exists()
        assert [one.reader for one in registrations(db.log_of("A"))] == ["q (new)"]
        db.execute("ALTER QUERY q RENAME TO r")
        db.execute(f"CREATE QUERY q WITH (engine = '{engine}') AS SELECT v FROM A FROM START")
        readers = db.execute("SHOW READERS").rows.to_pylist()
        assert [(one["log"], one["reader"]) for one in readers] == [("A", "q"), ("A", "r")]
        write(file, range(ROWS, 2 * ROWS))
        wait_for(lambda: len(results(db, "q", "v")) == 2 * ROWS)
        wait_for(lambda: len(results(db, "r", "w")) == 2 * ROWS - 10)
        with pytest.raises(SqlError, match="A is read under this name by query q, query r"):
            db.execute("ALTER STREAM A RENAME TO B")
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.resume()
        write(file, range(2 * ROWS, 3 * ROWS))
        wait_for(lambda: len(results(db, "q", "v")) == 3 * ROWS)
        wait_for(lambda: len(results(db, "r", "w")) == 3 * ROWS - 10)
        assert results(db, "r", "w") == [(v + 1,) for v in range(10, 3 * ROWS)]
        db.execute("DROP QUERY q")
        db.execute("DROP QUERY r")
        assert registrations(db.log_of("A")) == []
        db.execute("ALTER STREAM A RENAME TO B")
        db.execute("CREATE STREAM A (x INT) FROM file WITH (address = '/nowhere')")
        assert db.log_of("A") != db.log_of("B")
        db.execute("CREATE QUERY again AS SELECT v FROM B FROM START")
        wait_for(lambda: len(results(db, "again", "v")) == 3 * ROWS)


def test_tables_and_views_get_other_names(spark: SparkSession, tmp_path: Path) -> None:
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute("CREATE TABLE Rooms (name STRING, area DOUBLE)")
        db.execute("INSERT INTO Rooms VALUES ('hall', 23.5), ('store', 4.0)")
        db.execute("CREATE VIEW Large AS SELECT name FROM Rooms WHERE area > 10")
        with pytest.raises(SqlError, match="Rooms is read under this name by view Large"):
            db.execute("ALTER TABLE Rooms RENAME TO Halls")
        with pytest.raises(SqlError, match="table Rooms already exists"):
            db.execute("ALTER VIEW Large RENAME TO Rooms")
        assert db.execute("ALTER VIEW Large RENAME TO Big").message == "view Large is now Big"
        assert [tuple(one) for one in db.sql("SELECT * FROM Big").collect()] == [("hall",)]
        db.execute("DROP VIEW Big")
        assert db.execute("ALTER TABLE rooms RENAME TO Halls").message == "table Rooms is now Halls"
        with pytest.raises(SqlError, match="Halls is a table, not a view"):
            db.execute("ALTER VIEW Halls RENAME TO Large")
        db.execute("CREATE TABLE Rooms (name STRING)")  # the name is free
        db.execute("INSERT INTO Rooms VALUES ('cellar')")
    with nm.connect(spark, path=tmp_path / "plant") as db:
        halls = db.sql("SELECT name, area FROM Halls").collect()
        assert sorted(map(tuple, halls)) == [("hall", 23.5), ("store", 4.0)]
        assert [tuple(one) for one in db.sql("SELECT * FROM Rooms").collect()] == [("cellar",)]
