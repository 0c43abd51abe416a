"""Logs in, a log of results out: the same results, each once."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import CheckpointError, NilometerError
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.reader import LogReader
from nilometer.log.registrations import registrations
from nilometer.log.writer import LogWriter
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import read_windows
from nilometer.spark.inputs import Inputs, describe_log
from nilometer.spark.relations import SparkEngine
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.statements import read_query
from tests import naive
from tests.processes.test_kills import expect, generate
from tests.spark.log_harness import (
    NOW,
    open_log,
    open_logs,
    plan_statement,
    rows_of,
    run_statement,
    start_statement,
    write_log,
)
from tests.spark.stream_process import JOIN, STREAMS, TWO_STAGES, WINDOWS


def naive_join(streams: list[list[list]]) -> list[tuple[int, ...]]:
    network = TimeNetwork(STREAMS, read_windows(WINDOWS))
    return naive.window_join([list(chain(*stream)) for stream in streams], network)


def test_join_from_log_to_log_is_naive_join_across_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = generate(seed=7, batches=4, rows=60)
    logs = None
    for first in (0, 2):
        for name, batches in zip(STREAMS, streams, strict=True):
            before = max([-1, *(row[0] for rows in batches[:first] for row in rows)])
            write_log(tmp_path / name, batches[first : first + 2], largest=before)
        logs = open_logs(spark, tmp_path, STREAMS, rows=70, reader="test")
        query = run_statement(logs, JOIN, tmp_path)
    assert rows_of(tmp_path / "out", STREAMS) == sorted(naive_join(streams), key=repr)
    watermarks = [LogReader.open(tmp_path / name).watermark for name in STREAMS]
    assert LogReader.open(tmp_path / "out").watermark == min(watermarks)
    assert not list((tmp_path / "out" / "parts").iterdir())
    [metrics] = nm.metrics(query)
    assert {name: one.watermark for name, one in metrics.streams.items()} == dict(
        zip(STREAMS, watermarks, strict=True)
    )
    for name in STREAMS:
        [reader] = registrations(tmp_path / name)
        assert reader.reader == "test"
        assert reader.position == LogReader.open(tmp_path / name).end


def test_items_of_arrays_in_a_log_make_rows(spark: SparkSession, tmp_path: Path) -> None:
    """By the log's own reader, and by Spark where only Spark computes the array."""
    batches = generate(seed=3, batches=3, rows=20)[0]
    write_log(tmp_path / "A", batches)
    every = [row for rows in batches for row in rows if row[0] is not None]
    wanted = {
        "array(v, id, NULL)": [(k, x) for _, k, v, i in every for x in (v, i, None)],
        "transform(array(v, id), x -> x + 1)": [(k, x + 1) for _, k, v, i in every for x in (v, i)],
    }
    for number, (array, expected) in enumerate(wanted.items()):
        folder = tmp_path / f"{number}"
        logs = open_logs(spark, tmp_path, ["A"], rows=25)
        run_statement(logs, f"SELECT k, x FROM A, UNNEST({array}) AS u(x)", folder)
        assert rows_of(folder / "out", ["k", "x"]) == sorted(expected, key=repr)


def test_results_of_a_query_are_a_stream_of_another(spark: SparkSession, tmp_path: Path) -> None:
    """A changelog over two stages, and a join of a log with the log of another join."""
    streams = generate(seed=8, batches=2, rows=60)
    for name, batches in zip(STREAMS, streams, strict=True):
        write_log(tmp_path / name, batches)
    logs = open_logs(spark, tmp_path, STREAMS)
    run_statement(logs, TWO_STAGES, tmp_path / "changes")
    rows = rows_of(tmp_path / "changes" / "out", ("g", "n", "s", "m", "_time", "_diff"))
    wanted = expect("windowed", [list(chain(*stream)) for stream in streams])
    assert rows == sorted(wanted, key=repr)
    assert LogReader.open(tmp_path / "changes" / "out").layout.changes
    pairs = (
        "SELECT A.id AS a, B.id AS b, A.k AS k FROM A, B WINDOW = 5 MICROSECONDS WHERE A.k = B.k"
    )
    run_statement(logs, pairs, tmp_path / "pairs")
    both = Inputs(spark, logs={"C": logs.logs["C"], "P": open_log(tmp_path / "pairs" / "out")})
    triples = "SELECT a, b, C.id AS c FROM P, C WINDOW = 5 MICROSECONDS WHERE P.k = C.k"
    run_statement(both, triples, tmp_path / "triples")
    a, b, c = (list(chain(*stream)) for stream in streams)
    assert rows_of(tmp_path / "triples" / "out", ("a", "b", "c")) == sorted(
        (
            (x[3], y[3], z[3])
            for x in a
            for y in b
            for z in c
            if x[1] == y[1] == z[1] and abs(x[0] - y[0]) <= 5 and abs(max(x[0], y[0]) - z[0]) <= 5
        ),
        key=repr,
    )


@pytest.mark.parametrize("spelled", ["A.id", "CAST(substring(CAST(A.id AS STRING), 1) AS BIGINT)"])
def test_logs_beside_frames_and_functions_of_spark(
    spelled: str, spark: SparkSession, tmp_path: Path
) -> None:
    """A log, a static table, and a function of one stream that only Spark has."""
    write_log(tmp_path / "A", generate(seed=9, batches=2, rows=30)[0])
    logs = open_logs(spark, tmp_path, ["A"], rows=20)
    table = spark.createDataFrame([(k, f"n{k}") for k in range(5)], "k BIGINT, name STRING")
    inputs = Inputs(spark, {"T": table}, logs.logs)
    relations = {"A": describe_log("A", logs.logs["A"].layout)}
    db = nm.connect(spark)
    db.create_table("T", table)
    catalog = Catalog({**relations, "T": db.relations["T"]}, {}, SparkEngine(inputs))
    statement = f"SELECT n, name FROM (SELECT {spelled} AS n, k FROM A) a JOIN T ON a.k = T.k"
    plan = compile_statement(read_query(statement), catalog, 2)
    place = Destination(str(tmp_path / "out"), str(tmp_path / "checkpoint"), trigger=NOW)
    start_query(plan, inputs, place).awaitTermination()
    rows = chain(*generate(seed=9, batches=2, rows=30)[0])
    expected = sorted(((r[3], f"n{r[1]}") for r in rows if r[1] < 5), key=repr)
    assert rows_of(tmp_path / "out", ("n", "name")) == expected
    assert LogReader.open(tmp_path / "out").watermark == LogReader.open(tmp_path / "A").watermark


def test_unions_and_what_only_spark_can_select(spark: SparkSession, tmp_path: Path) -> None:
    streams = generate(seed=10, batches=2, rows=30)
    for name, batches in zip("AB", streams, strict=False):
        write_log(tmp_path / name, batches)
    logs = open_logs(spark, tmp_path, "AB")
    for name, first, second in (
        ("plain", "CAST(id AS INT)", "id"),
        ("spark", "hex(id)", "hex(id)"),
    ):
        folder = tmp_path / name
        union = f"SELECT {first} AS x FROM A UNION ALL SELECT {second} FROM B"
        run_statement(logs, union, folder)
        ids = [row[3] for stream in streams[:2] for row in chain(*stream)]
        wanted = ids if name == "plain" else [f"{one:X}" for one in ids]
        assert rows_of(folder / "out", ("x",)) == sorted(((one,) for one in wanted), key=repr)
        least = min(LogReader.open(tmp_path / one).watermark for one in "AB")
        assert LogReader.open(folder / "out").watermark == least


def test_answers_expire_by_punctuation_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "A", [[(1, 0, 0, 1), (5, 0, 0, 2)]], lateness=0)
    logs = open_logs(spark, tmp_path, ["A"])
    statement = "SELECT COUNT(*) AS n FROM A [RANGE 10 MICROSECONDS] GROUP BY k"
    run_statement(logs, statement, tmp_path)
    with LogWriter.open(tmp_path / "A", logs.logs["A"].layout) as log:
        log.append(None, watermark=40)
    run_statement(logs, statement, tmp_path)
    assert rows_of(tmp_path / "out", ("_time", "n", "_diff")) == sorted(
        [(1, 1, 1), (5, 1, -1), (5, 2, 1), (12, 2, -1), (12, 1, 1), (16, 1, -1)], key=repr
    )
    assert LogReader.open(tmp_path / "out").watermark == 40


def test_two_queries_cannot_share_a_log(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "A", [[(1, 0, 0, 1)]])
    plan = "SELECT id FROM A"
    logs = open_logs(spark, tmp_path, ["A"])
    run_statement(logs, plan, tmp_path)
    place = Destination(str(tmp_path / "out"), str(tmp_path / "other"), trigger=NOW)
    with pytest.raises(CheckpointError, match="holds the results of another query"):
        start_query(plan_statement(logs, plan), logs, place)


def test_what_the_log_of_a_query_cannot_hold(spark: SparkSession, tmp_path: Path) -> None:
    for name in "AB":
        write_log(tmp_path / name, [[(1, 0, 0, 1)]])
    logs = open_logs(spark, tmp_path, "AB")
    with pytest.raises(NilometerError, match="two columns of the results are named id"):
        start_statement(logs, "SELECT A.id, B.id FROM A, B WINDOW = 1 SECOND", tmp_path)


def test_a_log_that_is_read_twice_has_two_readers(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "A", [[(1, 0, 0, 1), (2, 0, 0, 2)]])
    logs = open_logs(spark, tmp_path, ["A"], reader="test")
    joined = "SELECT a.id AS x, b.id AS y FROM A a, A b WINDOW = 1 MICROSECOND WHERE a.k = b.k"
    run_statement(logs, joined, tmp_path)
    assert rows_of(tmp_path / "out", ("x", "y")) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [one.reader for one in registrations(tmp_path / "A")] == ["test", "test-2"]
    assert {one.about["query"] for one in registrations(tmp_path / "A")} == {"test"}


MIXED = [
    "ts > '1970-01-01 00:00:03'",
    "ts >= DATE '1970-01-01'",
    "s = 3",
    "CAST(s AS INT) + 1",
    "CAST(s AS DOUBLE)",
    "s || k",
    "k = '3'",
    "d > '0.25'",
    "flag = 'true'",
    "CAST(ts AS DATE) = '1970-01-01'",
    "greatest(k, d)",
    "coalesce(s, k)",
    "k IN ('1', '2')",
    "CASE WHEN k = '3' THEN d ELSE s END",
    "s BETWEEN 1 AND 3",
    "nullif(s, 2)",
    "k <=> s",
    "-CAST(s AS INT)",
    "k / d",
    "CAST(d AS STRING)",
    "CAST(flag AS STRING)",
]


def test_values_of_several_types_in_a_log_are_what_spark_makes_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Types decide who computes an expression: it is ours only where we mean what Spark means."""
    schema = pa.schema(
        {
            "ts": TIMESTAMP,
            "k": pa.int32(),
            "d": pa.float64(),
            "s": pa.string(),
            "flag": pa.bool_(),
        }
    )
    numbers = range(8)
    texts = ["0", " 1 ", "+2", "3", "04", "5", "6", "7"]
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([n * 1_000_000 for n in numbers], TIMESTAMP),
            pa.array(numbers, pa.int32()),
            pa.array([1 / (n + 1) for n in numbers]),
            pa.array(texts),
            pa.array([n % 2 == 0 for n in numbers]),
        ],
        schema=schema,
    )
    with LogWriter.open(tmp_path / "A", LogLayout(schema, "ts")) as log:
        log.append(rows, watermark=10_000_000)
    items = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(MIXED))
    logs = open_logs(spark, tmp_path, "A")
    run_statement(logs, f"SELECT k, {items} FROM A", tmp_path)
    frame = spark.createDataFrame(rows.to_pandas())
    expected = frame.selectExpr("k", *(f"{sql} AS c{i}" for i, sql in enumerate(MIXED))).collect()
    names = ["k", *(f"c{i}" for i in range(len(MIXED)))]
    assert sorted(rows_of(tmp_path / "out", names)) == sorted(map(tuple, expected))
    for sql in (one for one in MIXED if isinstance(expected[0][1 + MIXED.index(one)], bool)):
        place = tmp_path / str(MIXED.index(sql))
        place.mkdir()
        run_statement(logs, f"SELECT k FROM A WHERE {sql}", place)
        chosen = frame.where(sql).select("k").collect()
        assert sorted(rows_of(place / "out", ["k"])) == sorted(map(tuple, chosen)), sql
