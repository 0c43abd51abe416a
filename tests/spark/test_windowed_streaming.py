"""Answers that change, streamed: stages, clocks, static tables, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from nilometer.local.database import LocalDatabase
from tests.patience import wait_for
from tests.spark.harness import FileStream, run_to_end

DDL = "ts TIMESTAMP, k BIGINT, j BIGINT, v DOUBLE"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("j", pa.int64()),
        ("v", pa.float64()),
    ]
)
SECOND = 1_000_000
Row = tuple[int, int, int, float]


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [[]] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def changes(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    """What a query has written to folder/out, times as microseconds, sorted."""
    frame = spark.read.parquet(str(folder / "out"))
    own = [f"`{name}`" for name in frame.columns[:-2]]
    rows = frame.selectExpr(*own, "unix_micros(_time) AS _time", "_diff").collect()
    return sorted(tuple(row) for row in rows)


def expected(statement: str, streams: dict[str, Sequence[Row]], before: int) -> list[Any]:
    """The same by the local runner over all rows, strictly before an instant."""
    db = LocalDatabase(buckets=2)
    for name, rows in streams.items():
        db.create_stream(name, pa.Table.from_batches([to_batch(rows)]), time="ts")
    table = db.sql(statement)
    times = table.column("_time").cast(pa.int64())
    table = table.set_column(table.num_columns - 2, "_time", times)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(row for row in rows if row[-2] < before)


def rows_of(stream: int, first: int, count: int) -> list[Row]:
    """Rows a tenth of a second apart."""
    return [
        (n * SECOND // 10, (n * 7 + stream) % 5, (n // 3) % 4, (n * 37 % 100) / 8)
        for n in range(first, first + count)
    ]


@pytest.mark.parametrize("execution", ["tpa", "nta", "ita"])
def test_a_join_under_a_group_by_on_another_key_is_two_stages(
    execution: str, spark: SparkSession, tmp_path: Path
) -> None:
    statement = (
        "SELECT A.j, COUNT(*) AS n, SUM(B.v) AS s FROM A [RANGE 1 SECOND], B [RANGE 2 SECONDS] "
        "WHERE A.k = B.k GROUP BY A.j HAVING COUNT(*) > 1"
    )
    files = {name: FileStream(tmp_path / name, DDL) for name in "AB"}
    streams: dict[str, list[Row]] = {"A": [], "B": []}
    for first in (0, 40):  # the second half comes after a restart
        for number, name in enumerate("AB"):
            for part in (0, 20):
                rows = rows_of(number, first + part, 20)
                files[name].add(to_batch(rows))
                streams[name] += rows
        db = nm.connect(spark, execution=execution)
        for name in "AB":
            db.create_stream(name, files[name].read(spark), time="ts")
        query = run_to_end(db.sql(statement), tmp_path)
    assert len(nm.metrics(query)) == 2
    assert len(query.lastProgress["stateOperators"]) == 2
    frontier = streams["A"][-1][0]
    emitted = changes(spark, tmp_path)
    assert len(emitted) > 100
    assert emitted == expected(statement, streams, frontier)


@pytest.mark.parametrize(("execution", "on_time"), [("tpa", True), ("nta", True), ("ita", False)])
def test_a_selective_predicate_does_not_delay_an_expiry(
    execution: str, on_time: bool, spark: SparkSession, tmp_path: Path
) -> None:
    stream = FileStream(tmp_path / "A", DDL)
    stream.add(to_batch([(0, 1, 1, 100.0)]))
    stream.add(to_batch([(n * 60 * SECOND, 1, 1, 0.0) for n in range(1, 70)]))
    db = nm.connect(spark, execution=execution)
    db.create_stream("A", stream.read(spark), time="ts")
    statement = "SELECT k, SUM(v) AS s FROM A [RANGE 1 MINUTE] WHERE v > 50 GROUP BY k"
    run_to_end(db.sql(statement), tmp_path)
    gone = (1, 100.0, 60 * SECOND + 1, -1)
    assert (gone in changes(spark, tmp_path)) == on_time


def test_static_tables_stay_as_they_were_when_the_query_started(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = FileStream(tmp_path / "A", DDL)
    statement = (
        "SELECT k FROM A [RANGE 1 SECOND] EXCEPT SELECT k FROM T "
        "UNION ALL SELECT S.k + 100 FROM T, T S WHERE T.k = S.k"
    )
    for number, known in enumerate(([1, 2], [3])):
        stream.add(to_batch([(number * 10 * SECOND, k, 0, 0.0) for k in (1, 2, 3)]))
        db = nm.connect(spark)
        db.create_stream("A", stream.read(spark), time="ts")
        db.create_table("T", spark.createDataFrame([(k,) for k in known], "k BIGINT"))
        run_to_end(db.sql(statement), tmp_path)
    since_ever = -8_520_336_000_000_000
    assert changes(spark, tmp_path) == [
        (3, 0, 1),
        (3, SECOND + 1, -1),
        (101, since_ever, 1),
        (102, since_ever, 1),
    ]


def test_another_statement_on_an_old_checkpoint_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = FileStream(tmp_path / "A", DDL)
    for name, wrong in (("COUNT(*)", False), ("SUM(v)", True)):
        stream.add(to_batch(rows_of(0, 0, 5)))
        db = nm.connect(spark)
        db.create_stream("A", stream.read(spark), time="ts")
        answer = db.sql(f"SELECT k, {name} AS x FROM A [RANGE 1 SECOND] GROUP BY k")
        if wrong:
            with pytest.raises(StreamingQueryException, match="belongs to another query"):
                run_to_end(answer, tmp_path)
        else:
            run_to_end(answer, tmp_path)


def test_what_has_arrived_expires_though_nothing_arrives(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = FileStream(tmp_path / "A", "k BIGINT")
    stream.add(pa.RecordBatch.from_pydict({"k": [1, 1, 2]}))
    db = nm.connect(spark, heartbeat="250ms")
    db.create_stream("A", stream.read(spark))
    answer = db.sql("SELECT k, COUNT(*) AS n FROM A [RANGE 1 SECOND] GROUP BY k")
    with running(answer, tmp_path) as query:
        _wait(query, lambda: len(_written(spark, tmp_path)) == 4)
    rows = _written(spark, tmp_path)
    [(came, _), (went, _)] = [
        (row[2], row[3]) for row in sorted(rows, key=lambda row: row[2]) if row[0] == 2
    ]
    assert sorted(row[:2] + row[3:] for row in rows) == [
        (1, 2, -1),
        (1, 2, 1),
        (2, 1, -1),
        (2, 1, 1),
    ]
    assert went - came == SECOND + 1


def test_a_silent_stream_does_not_hold_up_the_answer_for_ever(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = {name: FileStream(tmp_path / name, DDL) for name in "AB"}
    streams["A"].add(to_batch([(0, 1, 0, 0.0), (5 * SECOND, 2, 0, 0.0)]))
    streams["B"].add(to_batch([(0, 2, 0, 0.0)]))
    db = nm.connect(spark)
    db.create_stream("A", streams["A"].read(spark), time="ts")
    db.create_stream("B", streams["B"].read(spark), time="ts", idle="1s")
    statement = "SELECT k FROM A [RANGE 1 SECOND] EXCEPT SELECT k FROM B [RANGE 1 SECOND]"
    with running(db.sql(statement), tmp_path) as query:
        _wait(query, lambda: len(_written(spark, tmp_path)) == 2)
    assert _written(spark, tmp_path) == [(1, 0, 1), (1, SECOND + 1, -1)]


@contextmanager
def running(answer: DataFrame, folder: Path) -> Iterator[StreamingQuery]:
    """A query that runs until the block is left."""
    query = (
        answer.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    try:
        yield query
    finally:
        query.stop()


def _wait(query: StreamingQuery, done: Callable[[], bool]) -> None:
    wait_for(done, every=0.2, said=query.exception, alive=lambda: query.exception() is None)


def _written(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    try:
        return changes(spark, folder)
    except AnalysisException:  # there is nothing yet
        return []
