"""What `nm.window_join` says when it is asked for something that cannot work."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from nilometer.errors import NilometerError

STREAM = (
    "timestamp AS ts",
    "value AS k",
    "CAST(value AS STRING) AS name",
    "CAST(value AS INT) AS v",
    "map('a', 1) AS m",
    "timestamp_ntz'2026-01-01' AS local",
)


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().selectExpr(*STREAM)


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "ts TIMESTAMP, k BIGINT, v INT")


Given = dict[str, Any]
Change = Callable[[DataFrame, DataFrame], Given]

CASES: list[tuple[str, Change, str]] = [
    (
        "unknown time column",
        lambda s, t: {"time": "tss"},
        "stream A has no column tss\n"
        "  detail: it has ts, k, name, v, m, local\n"
        "  hint: did you mean ts?",
    ),
    (
        "time column that is a number",
        lambda s, t: {"time": "k"},
        "the time column k of stream A must be a TIMESTAMP\n"
        "  detail: it is BIGINT\n"
        '  hint: for seconds since 1970 use col("k").cast("timestamp")',
    ),
    (
        "time column that is text",
        lambda s, t: {"time": {"A": "ts", "B": "name"}},
        "the time column name of stream B must be a TIMESTAMP\n"
        "  detail: it is STRING\n"
        '  hint: convert it first, such as to_timestamp(col("name"))',
    ),
    (
        "time column without a zone",
        lambda s, t: {"time": "local"},
        "the time column local of stream A must be a TIMESTAMP\n"
        "  detail: it is TIMESTAMP_NTZ\n"
        '  hint: convert it first, such as to_timestamp(col("local"))',
    ),
    (
        "time for a stream that is not there",
        lambda s, t: {"time": {"A": "ts", "C": "ts"}},
        "time names no stream of this join: C\n  detail: the streams are A, B",
    ),
    (
        "static input without a time",
        lambda s, t: {"streams": {"A": s, "T": t}, "time": {"A": "ts"}},
        "stream T is static and has no time column\n"
        "  detail: a static input has no arrival time\n"
        '  hint: name its time column: time={"T": "ts"}',
    ),
    (
        "static input with lateness",
        lambda s, t: {"streams": {"A": s, "T": t}, "lateness": "2s"},
        "stream T is static, so it cannot have lateness\n"
        "  detail: all its rows are there from the start; none can be late\n"
        '  hint: leave lateness out, or give it to streaming inputs only: lateness={"A": "2s"}',
    ),
    (
        "static input with idle",
        lambda s, t: {"streams": {"A": s, "T": t}, "idle": {"T": "2s"}},
        "stream T is static, so it cannot have idle\n"
        "  detail: all its rows are there from the start; none can be late\n"
        '  hint: leave idle out, or give it to streaming inputs only: idle={"A": "2s"}',
    ),
    (
        "window that names no stream",
        lambda s, t: {"windows": {("A", "X"): "10s"}},
        "the window WINDOW(A, X) = 10s names no stream of this join: X\n"
        "  detail: the streams are A, B\n"
        "  hint: use the names under which the streams are joined",
    ),
    (
        "negative window",
        lambda s, t: {"windows": "-10s"},
        "a window cannot have a negative length\n"
        "  detail: got '-10s'\n"
        "  hint: for a lower and an upper bound use nm.between(A, B, '-2s', '5s')",
    ),
    (
        "unreadable window",
        lambda s, t: {"windows": "10 parsecs"},
        "cannot read a duration\n"
        "  detail: got '10 parsecs'\n"
        "  hint: write a number and a unit, such as '10s', '0.8 seconds', '5 min' or '1h 30m'",
    ),
    (
        "negative lateness",
        lambda s, t: {"lateness": "-1s"},
        "lateness cannot be negative\n  detail: got '-1s' for stream A",
    ),
    (
        "unsatisfiable windows",
        lambda s, t: {
            "windows": [nm.between("A", "B", "5s", "6s"), nm.between("B", "A", "0s", "1s")]
        },
        "the windows contradict each other along A -> B -> A\n"
        "  detail: time(B) - time(A) <= 0s; time(A) - time(B) <= -5s; together 0 <= -5s\n"
        "  hint: widen or remove one of these windows",
    ),
    (
        "disconnected network",
        lambda s, t: {"streams": {"A": s, "B": s, "C": s}, "windows": {("A", "B"): "5s"}},
        "tuples of A could never be dropped: nothing says how much later C may come\n"
        "  detail: no window bounds time(C) - time(A) from above\n"
        '  hint: add a window that connects them, such as nm.window("A", "C", "10s")',
    ),
    (
        "one-sided network",
        lambda s, t: {"windows": nm.range("B", "5s")},
        "tuples of A could never be dropped: nothing says how much later B may come\n"
        "  detail: no window bounds time(B) - time(A) from above\n"
        '  hint: bound the other direction too: nm.window("A", "B", "10s") or nm.range("A", "10s")',
    ),
    (
        "keys of types that cannot be compared",
        lambda s, t: {"on": {"A": "k", "B": "name"}},
        "the streams' key columns have types that cannot be compared\n"
        "  detail: A.k is BIGINT, B.name is STRING\n"
        '  hint: cast them to one type first: df.withColumn("k", col("k").cast("long"))',
    ),
    (
        "key of a type without equality",
        lambda s, t: {"on": "m"},
        "column m of stream A cannot be a key\n"
        "  detail: values of type MAP<STRING,INT> cannot be compared for equality\n"
        "  hint: join on a column, or a list of columns, of a simple type",
    ),
    (
        "unknown key",
        lambda s, t: {"on": "nam"},
        "stream A has no column nam\n"
        "  detail: it has ts, k, name, v, m, local\n"
        "  hint: did you mean name?",
    ),
    (
        "key for some streams only",
        lambda s, t: {"on": {"A": "k"}},
        "no key is given for stream B\n"
        "  detail: A: k\n"
        '  hint: name as many key columns for every stream: on={"A": "x", "B": "y"}',
    ),
    (
        "keys of different lengths",
        lambda s, t: {"on": {"A": ["k", "v"], "B": "k"}},
        "the streams have keys of different lengths\n"
        "  detail: A: k, v; B: k\n"
        '  hint: name as many key columns for every stream: on={"A": "x", "B": "y"}',
    ),
    (
        "one stream",
        lambda s, t: {"streams": {"A": s}},
        "a window join needs at least two streams, got 1\n"
        '  hint: pass a dictionary such as {"A": a, "B": b}; a stream may appear twice',
    ),
    (
        "no stream",
        lambda s, t: {"streams": {}},
        "a window join needs at least two streams, got 0\n"
        '  hint: pass a dictionary such as {"A": a, "B": b}; a stream may appear twice',
    ),
    (
        "a list of streams",
        lambda s, t: {"streams": [s, s]},
        "streams must be a dictionary of DataFrames by name\n"
        "  detail: got list\n"
        '  hint: write {"A": a, "B": b}',
    ),
    (
        "not a DataFrame",
        lambda s, t: {"streams": {"A": s, "B": "b"}},
        "stream B is not a DataFrame\n  detail: got str",
    ),
    (
        "column that has no Arrow form",
        lambda s, t: {"streams": {"A": s, "B": s.selectExpr("*", "make_interval(0, 1) AS i")}},
        "column i of stream B cannot be carried through the join\n"
        "  detail: Spark has no Arrow form of INTERVAL\n"
        "  hint: drop the column before the join, or cast it",
    ),
    (
        "unknown kernel",
        lambda s, t: {"kernel": "sort"},
        "there is no kernel sort\n  hint: choose one of auto, hash, merge, nested",
    ),
    (
        "hash kernel without a key",
        lambda s, t: {"kernel": "hash", "on": None},
        "the hash kernel needs a key\n  hint: name key columns with on=, or use kernel='merge'",
    ),
    (
        "no buckets",
        lambda s, t: {"buckets": 0},
        "there must be at least one bucket, got 0",
    ),
    (
        "condition that is not a condition",
        lambda s, t: {"where": "A.v + B.v"},
        "a condition must be true or false\n"
        "  line 1, column 1:\n"
        "    A.v + B.v\n"
        "    ^^^^^^^^^\n"
        "  detail: A.v + B.v is of type INT\n"
        "  hint: compare it with something",
    ),
    (
        "condition on one stream that is not a condition",
        lambda s, t: {"where": "A.v"},
        "a condition must be true or false\n"
        "  line 1, column 1:\n"
        "    A.v\n"
        "    ^^^\n"
        "  detail: A.v is of type INT\n"
        "  hint: compare it with something",
    ),
    (
        "unknown function across streams",
        lambda s, t: {"where": "nosuch(A.name, B.name) < 3"},
        "there is no function nosuch\n"
        "  line 1, column 1:\n"
        "    nosuch(A.name, B.name) < 3\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: register it with db.create_function, or use a Spark function",
    ),
]


@pytest.mark.parametrize(("change", "text"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_refusals(change: Change, text: str, stream: DataFrame, table: DataFrame) -> None:
    given: Given = {
        "streams": {"A": stream, "B": stream},
        "on": "k",
        "windows": "10s",
        "time": "ts",
        **change(stream, table),
    }
    with pytest.raises(NilometerError) as caught:
        nm.window_join(**given)
    assert str(caught.value) == text


def test_what_spark_refuses_on_one_stream_is_reported_at_once(stream: DataFrame) -> None:
    with pytest.raises(NilometerError) as caught:
        nm.window_join(
            {"A": stream, "B": stream},
            on="k",
            windows="1s",
            time="ts",
            where="format_number(A.m) > 1",
        )
    assert caught.value.message == "Spark refuses this expression"
    assert "format_number" in (caught.value.detail or "")


def test_a_predicate_needs_to_know_its_columns() -> None:
    with pytest.raises(NilometerError) as caught:
        nm.predicate(lambda a: a)
    assert str(caught.value) == (
        "a Python predicate needs to know its columns\n"
        '  hint: name them in order: nm.predicate(function, "A.v", "B.v")'
    )


def test_the_state_store_is_set_where_it_is_missing_and_this_is_said(
    spark: SparkSession, stream: DataFrame
) -> None:
    provider = "spark.sql.streaming.stateStore.providerClass"
    good = spark.conf.get(provider)
    spark.conf.set(provider, str(good).replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.warns(UserWarning, match="^set spark.sql.streaming.stateStore.providerClass"):
            nm.window_join({"A": stream, "B": stream}, on="k", windows="1s", time="ts")
        assert spark.conf.get(provider) == good
        with warnings.catch_warnings(action="error"):
            nm.window_join({"A": stream, "B": stream}, on="k", windows="1s", time="ts")
    finally:
        spark.conf.set(provider, str(good))
