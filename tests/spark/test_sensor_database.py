"""The sensor database end to end: statements, sensors at work, queries on Spark, restarts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import InputError, SqlError
from nilometer.log.registrations import registrations
from tests.patience import LONG, wait_for
from tests.sensors_at_work import HttpSensors
from tests.spark.log_harness import rows_of

SENSORS = (
    "CREATE SENSOR TABLE Sensors (SensorID INT, Location STRING, "
    "Reading STREAM(temperature DOUBLE, reading BIGINT) FROM http WITH (interval = '500ms'))"
)


@pytest.fixture
def http() -> Iterator[HttpSensors]:
    with HttpSensors() as sensors:
        yield sensors


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        yield opened


def said(db: nm.Database, statement: str) -> str:
    return str(db.sql(statement).collect()[0][0])


def insert(db: nm.Database, http: HttpSensors, *numbers: int) -> None:
    rows = ", ".join(f"({n}, '{'hall' if n % 2 else 'roof'}', '{http.url(n)}')" for n in numbers)
    assert said(db, f"INSERT INTO Sensors VALUES {rows}").startswith("inserted")


def contacted(http: HttpSensors) -> set[int]:
    return {int(path.rpartition("/")[2]) for path in http.counts() if "sensor/" in path}


def rows_in(spark: SparkSession, table: str, column: str = "SensorID") -> set[int]:
    return {row[0] for row in spark.table(table).select(column).distinct().collect()}


def results_of(db: nm.Database, query: str, column: str) -> list[int]:
    """What a named query has said so far; without Spark, which has enough to do meanwhile."""
    return [value for (value,) in rows_of(db.log_of(query), [column])]


def write_lines(path: Path, rows: list[tuple[int, int, str]]) -> None:
    lines = [json.dumps({"k": k, "v": v, "ts": ts}) for k, v, ts in rows]
    path.write_text("\n".join(lines) + "\n")


def test_a_query_contacts_the_sensors_that_it_needs_and_follows_the_table(
    spark: SparkSession, db: nm.Database, http: HttpSensors, tmp_path: Path
) -> None:
    db.sql(SENSORS)
    insert(db, http, *range(1, 9))
    static = db.sql("SELECT SensorID FROM Sensors WHERE Location = 'roof' AND SensorID > 2")
    assert not static.isStreaming
    assert sorted(row[0] for row in static.collect()) == [4, 6, 8]
    assert contacted(http) == set()
    answer = db.sql(
        "SELECT S.SensorID, S.Reading.temperature AS t, S._time AS at FROM Sensors S "
        "WHERE S.Location = 'hall' AND S.SensorID < 20 AND S.Reading.reading >= 0"
    )
    assert contacted(http) == set()
    query = (
        answer.writeStream.format("memory")
        .queryName("hall")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        # On a cluster, workers have to start first; and every reading is an object in a store.
        wait_for(
            lambda: rows_in(spark, "hall") == {1, 3, 5, 7},
            180,
            said=lambda: f"there are {rows_in(spark, 'hall')}, at {query.lastProgress}",
        )
        assert contacted(http) == {1, 3, 5, 7}
        insert(db, http, 9, 10, 21)
        run = {"alive": lambda: query.isActive, "said": query.exception}
        wait_for(lambda: 9 in rows_in(spark, "hall"), **run)
        assert said(db, "DELETE FROM Sensors WHERE SensorID = 3") == "deleted 1 row from Sensors"
        wait_for(lambda: 3 not in {int(one.sensor) for one in db.sensors("Sensors")})
        said(db, "UPDATE Sensors SET Location = 'hall' WHERE SensorID = 10")
        wait_for(lambda: 10 in rows_in(spark, "hall"), **run)
        assert contacted(http) == {1, 3, 5, 7, 9, 10}
        before = http.counts()["/sensor/3"] or http.counts()["sensor/3"]
        [doing] = db.sql("SHOW STREAMS").collect()
        assert (doing["sensors"], doing["readers"], doing["error"]) == (5, 1, None)
        assert doing["rows"] > 0
        assert doing["watermark"] is not None
        shown = {row["sensor"]: row for row in db.sql("SHOW SENSORS").collect()}
        assert shown["2"]["state"] == "not needed"
        assert shown["1"]["state"] == "connected"
        assert shown["1"]["readings"] > 0
        assert (http.counts()["/sensor/3"] or http.counts()["sensor/3"]) == before
    finally:
        query.stop()
    wait_for(lambda: not db.sensors("Sensors"))
    assert said(db, "DROP SENSOR TABLE Sensors") == "dropped sensor table Sensors"


def test_spark_is_asked_what_only_it_can_tell_of_sensors(
    spark: SparkSession, db: nm.Database, http: HttpSensors
) -> None:
    db.sql(SENSORS)
    insert(db, http, *range(1, 7))
    db.create_function("is_small", lambda number: number < 4)
    text = (
        "SELECT S.SensorID, S.Reading.temperature AS t FROM Sensors S "
        "WHERE upper(S.Location) = 'HALL' AND is_small(S.SensorID)"
    )
    assert "contacts the sensors with UPPER(Location) = 'HALL' AND" in db.explain(text)
    db.sql(f"CREATE QUERY small AS {text}")
    wait_for(lambda: set(results_of(db, "small", "SensorID")) == {1, 3})
    assert contacted(http) == {1, 3}


@pytest.mark.limit(900)
def test_named_queries_go_on_after_a_restart_and_others_read_their_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two streams from files, joined; the join's results are counted by another query."""
    day = "2026-01-31 12:00:"
    first = [(i % 7, i, f"{day}{i // 10:02d}.{i % 10}") for i in range(200)]
    second = [(i % 5, i, f"{day}{i // 10:02d}.{i % 10}5") for i in range(200)]
    write_lines(tmp_path / "a.jsonl", first)
    write_lines(tmp_path / "b.jsonl", second)
    columns = "(k INT, v INT, ts TIMESTAMP, TIME ts)"
    with nm.connect(spark, path=tmp_path / "plant") as db:
        for name in "ab":
            db.sql(
                f"CREATE STREAM {name.upper()} {columns} FROM file "
                f"WITH (address = '{tmp_path}/{name}.jsonl', speed = 'max')"
            )
        text = "SELECT A.k, A.v AS a, B.v AS b FROM A, B WINDOW = 0.3 SECONDS WHERE A.k = B.k"
        assert said(db, f"CREATE QUERY pairs AS {text}") == "query pairs created and started"
        with pytest.raises(SqlError, match="query pairs already exists"):
            db.sql(f"CREATE QUERY pairs AS {text}")
        # The log of the results is a stream; a query over it begins at its start if told so.
        counts = "SELECT k, COUNT(*) AS n FROM pairs [RANGE 1 HOUR] GROUP BY k FROM START"
        db.sql(f"CREATE QUERY counts AS {counts}")
        wait_for(lambda: len(results_of(db, "pairs", "k")) > 0)
        [row] = [r for r in db.sql("SHOW QUERIES").collect() if r["name"] == "pairs"]
        assert (row["state"], row["emits"]) == ("running", "append")
        with pytest.raises(SqlError, match="query pairs reads A"):
            db.sql("DROP STREAM A")
        with pytest.raises(InputError, match="is in use"):
            nm.connect(spark, path=tmp_path / "plant")
    expected = sorted(
        (k, a, b)
        for k, a, _ in first
        for other, b, _ in second
        if k == other and abs(b * 100 + 50 - a * 100) <= 300
    )
    with nm.connect(spark, path=tmp_path / "plant") as db:
        states = {row["name"]: row["state"] for row in db.sql("SHOW QUERIES").collect()}
        assert states == {"pairs": "to be resumed", "counts": "to be resumed"}
        assert sorted(db.resume()) == ["counts", "pairs"]
        wait_for(lambda: len(results_of(db, "pairs", "k")) >= len(expected))
        pairs = sorted(tuple(row) for row in db.history("pairs").select("k", "a", "b").collect())
        assert pairs == expected
        last = Counter(k for k, a, b in expected if seen_by((k, a, b), 15))

        def counted() -> dict[int, int]:
            answer = nm.snapshot(db.history("counts"), at="2026-01-31 12:00:15").collect()
            return {row["k"]: row["n"] for row in answer}

        # There is always more to process, since watermarks come every second.
        wait_for(lambda: counted() == last, every=0.5)
        db.sql("DROP QUERY counts")
        db.sql("STOP QUERY pairs")
        assert [one.active for one in registrations(db.log_of("A"))] == [False]
        db.sql("DROP QUERY pairs")
        assert registrations(db.log_of("A")) == []
        assert db.sql("SHOW QUERIES").count() == 0


def seen_by(row: tuple[int, int, int], second: int) -> bool:
    """Whether a result's time, the later of its rows' times, is at most so late."""
    _, a, b = row
    return max(a * 100, b * 100 + 50) <= second * 1000


def test_history_is_read_in_batch_and_a_reader_by_rows(
    spark: SparkSession, db: nm.Database, tmp_path: Path
) -> None:
    write_lines(tmp_path / "a.jsonl", [(i, i, f"2026-01-31 12:00:{i:02d}") for i in range(60)])
    db.sql(
        "CREATE STREAM A (k INT, v INT, ts TIMESTAMP, TIME ts, HISTORY FOREVER) FROM file "
        f"WITH (address = '{tmp_path}/a.jsonl', speed = 'max')"
    )
    assert db.history("A").count() == 0
    db.sql("CREATE QUERY q AS SELECT k FROM A WHERE v > 30")
    wait_for(lambda: len(results_of(db, "q", "k")) == 29)
    assert db.history("q").count() == 29
    assert db.history("A").where("ts >= '2026-01-31 12:00:50'").count() == 10
    last = datetime(2026, 1, 31, 12, 0, 30, tzinfo=UTC)
    between = db.history("A", start="2026-01-31 12:00:28", end=last)
    assert sorted(row["k"] for row in between.collect()) == [28, 29, 30]
    rows = (
        spark.readStream.format("nilometer")
        .option("path", db.log_of("A"))
        .option("startingOffsets", "earliest")
        .load()
    )
    query = rows.writeStream.format("memory").queryName("rows").trigger(availableNow=True).start()
    query.awaitTermination(int(LONG))
    assert rows_in(spark, "rows", "k") == set(range(60))


def test_what_cannot_be_done_is_said_kindly(spark: SparkSession, db: nm.Database) -> None:
    db.sql(SENSORS)
    with pytest.raises(SqlError, match="sensor table Sensors already exists"):
        db.sql(SENSORS)
    with pytest.raises(SqlError, match="there is no query nothing"):
        db.sql("START QUERY nothing")
    with pytest.raises(SqlError, match="reads no stream"):
        db.sql("CREATE QUERY q AS SELECT SensorID FROM Sensors")
    with pytest.raises(SqlError, match="two columns of the results are named SensorID"):
        db.sql("CREATE QUERY q AS SELECT * FROM Sensors A, Sensors B WINDOW = 1 SECOND")
    assert db.sql("SHOW QUERIES").count() == 0
    with pytest.raises(SqlError, match="Sensors"):
        db.sql("SELECT S.Reading.temprature FROM Sensors S")
    with pytest.raises(SqlError, match="nothing"):
        db.sql("SHOW SENSORS FROM nothing")
    assert db.sql("SHOW DEAD LETTERS").count() == 0
    assert said(db, "DROP QUERY IF EXISTS nothing") == "there is no query nothing"
    db.sql("CREATE TABLE Rooms (Location STRING, floor INT)")
    db.sql("INSERT INTO Rooms VALUES ('hall', 0), ('roof', 4)")
    joined = db.sql(
        "SELECT S.SensorID, R.floor FROM Sensors S, Rooms R WHERE S.Location = R.Location"
    )
    assert not joined.isStreaming
    assert joined.collect() == []


def test_a_database_without_a_path_is_gone_when_it_is_closed(spark: SparkSession) -> None:
    with nm.connect(spark) as db:
        db.sql("CREATE TABLE T (a INT)")
        db.sql("INSERT INTO T VALUES (1), (NULL)")
        assert sorted(row[0] or 0 for row in db.sql("SELECT a FROM T").collect()) == [0, 1]
        folder = Path(db._stored.parts.home.folder)
        assert folder.exists()
    assert not folder.exists()
    with pytest.raises(InputError, match="the database is closed"):
        db.sql("CREATE TABLE T (a INT)")
    with pytest.raises(InputError, match="the database is closed"):
        db.sql("SELECT a FROM T")
    db.close()


def test_what_a_named_query_reads_is_not_dropped(spark: SparkSession, db: nm.Database) -> None:
    """Not even before it has read a row, nor while it is stopped, nor a table or a relation."""
    db.sql("CREATE STREAM A (k INT) FROM synthetic")
    db.sql("CREATE TABLE T (k INT)")
    db.sql("CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM A [RANGE 1 HOUR] GROUP BY k")
    few = "WITH T2 AS (SELECT k FROM t) SELECT c.n FROM Counts c, T2 t WHERE c.k = t.k"
    db.sql(f"CREATE QUERY few AS {few}")
    db.sql("CREATE TABLE T2 (k INT)")
    db.sql("STOP QUERY counts")
    for what, reader in (("STREAM a", "counts"), ("TABLE T", "few"), ("QUERY counts", "few")):
        with pytest.raises(SqlError, match=f"query {reader} reads"):
            db.sql(f"DROP {what}")
    assert said(db, "DROP TABLE T2") == "dropped table T2"
    for what in ("QUERY few", "QUERY counts", "STREAM A", "TABLE T"):
        db.sql(f"DROP {what}")
    assert db.sql("SHOW STREAMS").count() == 0


def test_a_name_is_that_of_a_frame_or_of_something_kept_not_of_both(
    spark: SparkSession, db: nm.Database
) -> None:
    frame = spark.createDataFrame([(1,)], "a INT")
    db.create_table("Given", frame)
    db.sql("CREATE TABLE Kept (a INT)")
    assert set(db.relations) == {"Given", "Kept"}
    with pytest.raises(SqlError, match="DataFrame given already exists"):
        db.sql("CREATE TABLE given (a INT)")
    with pytest.raises(InputError, match="table kept already exists"):
        db.create_table("kept", frame)
    with pytest.raises(
        InputError, match="Kept is stored in the database and is not a DataFrame"
    ) as caught:
        db.drop("Kept")
    assert "DROP TABLE Kept" in str(caught.value)
    db.drop("Given")
    db.sql("CREATE TABLE Given (b INT)")
    assert db.sql("SELECT b FROM Given").collect() == []


def test_orders_follow_what_is_declared_and_measured(spark: SparkSession, tmp_path: Path) -> None:
    """Three streams that share a key: the one with more values of it comes first."""
    join = (
        "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
        "WINDOW(A, B) = 5 SECONDS AND WINDOW(A, C) = 5 SECONDS"
    )

    def new_a(db: nm.Database) -> str:
        lines = db.explain(join).splitlines()
        return next(one for one in lines if one.strip().startswith("new A"))

    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.sql("CREATE STREAM A (k INT DISTINCT 100, EVERY 1 SECOND) FROM http")
        db.sql("CREATE STREAM B (k INT DISTINCT 2, EVERY 1 SECOND) FROM http")
        db.sql("CREATE STREAM C (k INT) FROM http")
        assert "assuming 1 row/s, 100 values until measured" in db.explain(join)
        assert "C, B" in new_a(db)  # C is taken to have a hundred values
        store = db._stored.parts.home.manager._watched["C"].stream.store
        for second in range(100):
            rows = pa.record_batch({"k": pa.array([0] * 50, pa.int32())})
            store.measured.add(rows, second * 1_000_000)
        assert "as measured; chosen again as rates change" in db.explain(join)
        assert "B, C" in new_a(db)
        assert [row[1] for row in db.sql("DESCRIBE A").collect()] == ["INT DISTINCT 100"]
    with nm.connect(spark, path=tmp_path / "plant") as db:
        assert "B, C" in new_a(db)
