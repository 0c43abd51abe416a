"""`format("nilometer")`: a log as a source and sink of rows, for anyone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, SensorLayout
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.registrations import registrations
from nilometer.log.static_rows import add_static_rows
from nilometer.log.writer import LogWriter
from nilometer.spark.inputs import Inputs
from nilometer.spark.log_rows import read_log, register_log_sources
from tests.spark.harness import results, run_to_end
from tests.spark.log_harness import open_log, rows_of, run_statement, write_log

STATIC = pa.schema([("room", pa.string()), ("floor", pa.int32())])
FIELDS = pa.schema([("celsius", pa.float64()), ("at", TIMESTAMP)])
SENSORS = LogLayout(
    pa.schema([(SENSOR, pa.int32()), (TIME, TIMESTAMP), ("celsius", pa.float64())]),
    TIME,
    SensorLayout(STATIC, 1, "reading", FIELDS, "at"),
)


def stream(spark: SparkSession, location: Path, **options: object) -> DataFrame:
    register_log_sources(spark)
    reader = spark.readStream.format("nilometer").option("path", str(location))
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def numbered(first: int, last: int) -> list[tuple[int, int, int, int]]:
    return [(number, 0, 0, number) for number in range(first, last)]


def ids(spark: SparkSession, folder: Path) -> list[int]:
    return [number for (number,) in results(spark, folder, ["id"])]


def test_rows_come_in_limited_batches_and_go_on_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write_log(log, [numbered(0, 30), numbered(30, 32), [], numbered(32, 50)])
    rows = stream(spark, log, startingOffsets="earliest", maxRowsPerTrigger=20, reader="r")
    query = run_to_end(rows, tmp_path)
    read = [report["numInputRows"] for report in query.recentProgress]
    assert [count for count in read if count] == [20, 20, 10]
    assert ids(spark, tmp_path) == list(range(50))
    write_log(log, [numbered(50, 60)])
    run_to_end(rows, tmp_path)
    assert ids(spark, tmp_path) == list(range(60))
    [reader] = registrations(log)
    assert reader.position == LogReader.open(log).end


def test_a_reader_without_a_checkpoint_goes_on_where_it_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write_log(log, [numbered(0, 10)])
    run_to_end(stream(spark, log, startingOffsets="earliest", reader="r"), tmp_path / "first")
    write_log(log, [numbered(10, 15)])
    run_to_end(stream(spark, log, startingOffsets="earliest", reader="r"), tmp_path / "second")
    assert ids(spark, tmp_path / "second") == list(range(10, 15))


def test_only_what_comes_from_now_on_by_default(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [numbered(0, 10)])
    rows = stream(spark, tmp_path / "log")
    query: StreamingQuery = (
        rows.writeStream.format("memory")
        .queryName("from_now_on")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        write_log(tmp_path / "log", [numbered(10, 12)])
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(r.id for r in spark.table("from_now_on").collect()) == [10, 11]


def test_rows_that_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    layout = LogLayout(pa.schema([("ts", TIMESTAMP), ("id", pa.int64())]), "ts")
    rows = pa.table({"ts": pa.array(range(100), TIMESTAMP), "id": pa.array(range(100))})
    with LogWriter.open(log, layout, LogOptions(segment=1)) as writer:
        for first in range(0, 100, 10):
            writer.append(rows.slice(first, 10).to_batches()[0])
        start = json.dumps(LogReader.open(log).start.to_json())
        gone = sum(writer.drop_oldest() for _ in range(3))
    with pytest.raises(Exception, match=f"{gone} rows of"):
        run_to_end(stream(spark, log, startingOffsets=start), tmp_path / "strict")
    lost = stream(spark, log, startingOffsets=start, failOnDataLoss=False)
    run_to_end(lost, tmp_path / "lost")
    assert gone >= 20
    assert ids(spark, tmp_path / "lost") == list(range(gone, 100))


def test_history_is_read_by_ranges_of_time(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [numbered(first, first + 10) for first in range(0, 100, 10)])
    location = str(tmp_path / "log")
    low, high, most = (datetime.fromtimestamp(n / 1e6, UTC) for n in (15, 32, 89))
    early, late = read_log(spark, location, times=(None, low)), read_log(spark, location)
    assert sorted(r.id for r in early.unionAll(late).collect()) == sorted([*range(16), *range(100)])
    chosen = read_log(spark, location, times=(low, high)).where("id <> 20")
    assert sorted(r.id for r in chosen.collect()) == [15, 16, 17, 18, 19, *range(21, 33)]
    # A frame that is damaged is not noticed if no time in it is asked for: so it is skipped.
    [segment] = [f for f in (tmp_path / "log").iterdir() if f.stat().st_size > 2000]
    content = bytearray(segment.read_bytes())
    content[-4] ^= 0xFF
    segment.write_bytes(bytes(content))
    assert read_log(spark, location, times=(None, most)).count() == 90
    with pytest.raises(Exception, match="damaged"):
        read_log(spark, location).count()


def test_rows_of_any_stream_become_a_log(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [numbered(0, 10), numbered(10, 20)])
    rows = stream(spark, tmp_path / "log", startingOffsets="earliest", maxRowsPerTrigger=10)
    for _ in range(2):
        query = (
            rows.selectExpr("id * 2 AS twice", "ts")
            .writeStream.format("nilometer")
            .option("path", str(tmp_path / "copy"))
            .option("time", "ts")
            .option("lateness", "5us")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    wanted = sorted(((2 * n, n) for n in range(20)), key=repr)
    assert rows_of(tmp_path / "copy", ("twice", "ts")) == wanted
    assert LogReader.open(tmp_path / "copy").watermark == 14


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": "soon"}, "startingOffsets cannot be 'soon'"),
        ({"maxRowsPerTrigger": "0"}, "maxRowsPerTrigger must be a number of rows"),
        ({"where": "room = 'hall'"}, "only readers of a sensor table can choose sensors"),
    ],
)
def test_options_that_cannot_be(
    options: dict[str, str], message: str, spark: SparkSession, tmp_path: Path
) -> None:
    write_log(tmp_path / "log", [numbered(0, 1)])
    with pytest.raises(Exception, match=message):
        run_to_end(
            stream(spark, tmp_path / "log", **{"startingOffsets": "earliest", **options}), tmp_path
        )


def test_there_must_be_a_log(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no log here"):
        stream(spark, tmp_path / "nothing")


def readings(*rows: tuple[int, int, float]) -> pa.RecordBatch:
    columns = [
        pa.array(values, f.type)
        for values, f in zip(zip(*rows, strict=True), SENSORS.stored, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SENSORS.stored)


def add_sensor(location: Path, version: int, room: str, floor: int) -> None:
    row = pa.table(
        {
            SENSOR: pa.array([version], pa.int32()),
            "room": [room],
            "floor": pa.array([floor], pa.int32()),
        }
    )
    add_static_rows(location, row)


def test_rows_of_a_sensor_table_have_the_values_of_their_sensors(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, SENSORS) as writer:
        add_sensor(log, 1, "hall", 0)
        add_sensor(log, 2, "attic", 3)
        writer.append(readings((1, 10, 20.0), (2, 11, 30.0)), watermark=5)
        rows = stream(spark, log, startingOffsets="earliest", where="floor > 2 OR room LIKE 'c%'")
        assert rows.columns == ["room", "reading", "floor", "_time"]
        run_to_end(rows, tmp_path)
        add_sensor(log, 3, "cellar", -1)
        writer.append(readings((3, 12, 12.0), (1, 13, 21.0), (2, 14, 31.0)), watermark=12)
    run_to_end(rows, tmp_path)
    columns = ["room", "reading.celsius", "unix_micros(reading.at)", "floor", "unix_micros(_time)"]
    wanted = [("attic", 30.0, 11, 3, 11), ("attic", 31.0, 14, 3, 14), ("cellar", 12.0, 12, -1, 12)]
    assert results(spark, tmp_path, columns) == wanted
    table = Inputs(spark, logs={"S": open_log(log)})
    asked = "SELECT room, S.reading.celsius AS c FROM S WHERE floor > 2"
    run_statement(table, asked, tmp_path / "query")
    stored = rows_of(tmp_path / "query" / "out", ("room", "c", "_time"))
    assert stored == [("attic", 30.0, 11), ("attic", 31.0, 14)]
    assert LogReader.open(tmp_path / "query" / "out").watermark == 12
