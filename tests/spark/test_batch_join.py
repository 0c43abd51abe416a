"""`nm.window_join` over static DataFrames: the same rows as the naive join, for any key."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

import nilometer as nm
from nilometer.spark.inputs import Inputs
from nilometer.spark.join_plan import JoinOptions, plan_window_join
from nilometer.spark.relations import SparkEngine
from nilometer.spark.streams import JoinInput
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.statements import ExplainFormat
from tests import naive
from tests.cases import JoinCase, join_cases

DDL = "ts TIMESTAMP, k BIGINT, v BIGINT, id BIGINT"
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def frames_of(case: JoinCase, spark: SparkSession) -> dict[str, DataFrame]:
    return {
        name: spark.createDataFrame(case.batch(i, 0, len(case.streams[i])).to_pandas(), DDL)
        if case.streams[i]
        else spark.createDataFrame([], DDL)
        for i, name in enumerate(case.network.streams)
    }


def ids(frame: DataFrame, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in frame.selectExpr(*[f"{n}.id" for n in names]).collect())


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(case=join_cases(max_streams=5, max_rows=40, keys=6), buckets=st.sampled_from((1, 2, 5)))
def test_batch_is_naive_join(case: JoinCase, buckets: int, spark: SparkSession) -> None:
    joined = nm.window_join(
        frames_of(case, spark),
        on="k",
        windows=case.network.windows,
        time="ts",
        buckets=buckets,
    )
    assert ids(joined, case.network.streams) == naive.window_join(case.streams, case.network)


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(
    case=join_cases(max_streams=3, max_rows=15),
    kernel=st.sampled_from(("auto", "nested")),
    in_python=st.booleans(),
)
def test_batch_without_a_key(
    case: JoinCase, kernel: str, in_python: bool, spark: SparkSession
) -> None:
    near = nm.predicate(lambda a, b: (a - b).abs() <= 1, "A.v", "B.v")
    joined = nm.window_join(
        frames_of(case, spark),
        windows=case.network.windows,
        time="ts",
        where=["B.v < 4", near if in_python else "abs(A.v - B.v) <= 1"],
        kernel=kernel,
    )
    expected = naive.window_join(
        case.streams,
        case.network,
        keyed=False,
        test=lambda rows: abs(rows[0][2] - rows[1][2]) <= 1 and rows[1][2] < 4,
    )
    assert ids(joined, case.network.streams) == expected


KEYS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [1, -1],
    "INT": [1, 2**31 - 1],
    "BIGINT": [1, -(2**63)],
    "FLOAT": [0.0, -0.0, math.nan, 1.5],
    "DOUBLE": [0.0, -0.0, math.nan, math.inf],
    "DECIMAL(10,2)": [Decimal("1.50"), Decimal("-0.01")],
    "DECIMAL(38,3)": [Decimal("1.500"), Decimal(10) ** 30],
    "STRING": ["", "a", "ä" * 20],
    "BINARY": [b"", b"\0"],
    "DATE": [date(2026, 1, 1), date(1582, 10, 15)],
    "TIMESTAMP": [at(0), at(0.000001)],
    "TIMESTAMP_NTZ": [datetime(2026, 1, 1), datetime(2026, 1, 2)],
    "INTERVAL DAY TO SECOND": [timedelta(0), timedelta(days=-1, microseconds=1)],
    "ARRAY<INT>": [[], [1, None], [1]],
    "STRUCT<x: DOUBLE, y: STRING>": [
        Row(x=0.0, y="a"),
        Row(x=-0.0, y="a"),
        Row(x=math.nan, y=None),
    ],
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return bool(a == b)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KEYS)
def test_every_type_can_be_a_key(kind: str, spark: SparkSession) -> None:
    values = KEYS[kind]
    rows = [(at(i), value, i) for i, value in enumerate([*values, None])]
    frame = spark.createDataFrame(rows, f"ts TIMESTAMP, k {kind}, id INT")
    joined = nm.window_join({"A": frame, "B": frame}, on="k", windows="1h", time="ts")
    expected = [(i, j) for (i, a), (j, b) in product(enumerate(values), repeat=2) if same(a, b)]
    assert ids(joined, ("A", "B")) == expected
    assert joined.schema["A"].dataType == frame.schema


def test_keys_of_several_columns_under_different_names(spark: SparkSession) -> None:
    a = spark.createDataFrame(
        [(at(0), 1, "x", 0), (at(1), 1, None, 1), (at(2), 2, "x", 2)],
        "ts TIMESTAMP, n INT, s STRING, id INT",
    )
    b = spark.createDataFrame(
        [("x", 1, at(5), 0), ("y", 1, at(5), 1), ("x", 2, at(99), 2)],
        "label STRING, number BIGINT, `when` TIMESTAMP, id INT",
    )
    joined = nm.window_join(
        {"A": a, "B": b},
        on={"A": ["n", "s"], "B": ["number", "LABEL"]},
        windows={("A", "B"): "10s"},
        time={"A": "ts", "B": "when"},
    )
    assert ids(joined, ("A", "B")) == [(0, 0)]
    [row] = joined.collect()
    assert row["A"]["n"] == 1
    assert joined.schema["A"].dataType["n"].dataType.simpleString() == "int"
    assert joined.selectExpr("unix_micros(_time) - unix_micros(A.ts)").first()[0] == 5_000_000


def test_awkward_names(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(at(0), 1, "it's"), (at(1), 1, "`")],
        "`the time` TIMESTAMP, `a.b` INT, `it's ``x``` STRING",
    )
    joined = nm.window_join(
        {"select": frame, "Camera 2": frame},
        on="a.b",
        windows={("select", "Camera 2"): "5s"},
        time="the time",
        where="`select`.`it's ``x``` <> `Camera 2`.`it's ``x```",
    )
    assert joined.columns == ["select", "Camera 2", "_time"]
    pairs = {(row["select"]["it's `x`"], row["Camera 2"]["it's `x`"]) for row in joined.collect()}
    assert pairs == {("it's", "`"), ("`", "it's")}


def test_nested_payloads_pass_through(spark: SparkSession) -> None:
    rows = [(at(0), 1, {"a": [1, None]}, Row(x=Row(y=at(7))), Decimal("1.5"), None)]
    frame = spark.createDataFrame(
        rows,
        "ts TIMESTAMP, k INT, m MAP<STRING, ARRAY<INT>>, s STRUCT<x: STRUCT<y: TIMESTAMP>>, "
        "d DECIMAL(20, 1), nothing ARRAY<STRING>",
    )
    [row] = nm.window_join({"A": frame, "B": frame}, on="k", windows="1s", time="ts").collect()
    assert row["A"] == row["B"] == frame.first()


def test_conditions_without_columns_count(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(at(0), 1)], "ts TIMESTAMP, k INT")
    streams = {"A": frame, "B": frame}
    for where, rows in (("1 = 0", 0), ("NULL", 0), (["A.k = B.k", "true"], 1)):
        joined = nm.window_join(streams, on="k", windows="1s", time="ts", where=where)
        assert joined.count() == rows


def test_keys_may_differ_in_what_can_be_null(spark: SparkSession) -> None:
    a = spark.range(1).selectExpr("timestamp'2026-01-01' AS ts", "array(1, 2) AS k")
    b = spark.createDataFrame([(at(0), [1, 2])], "ts TIMESTAMP, k ARRAY<INT>")
    assert nm.window_join({"A": a, "B": b}, on="k", windows="1s", time="ts").count() == 1


def test_maps_in_joins_without_a_key(spark: SparkSession) -> None:
    frame = spark.range(8).selectExpr("timestamp_seconds(id) AS ts", "map('a', id) AS m")
    joined = nm.window_join({"A": frame, "B": frame}, windows="0s", time="ts", buckets=4)
    assert joined.count() == 8


@pytest.mark.soak
def test_a_large_batch_in_time_order(spark: SparkSession) -> None:
    """More rows than one step takes: memory follows the window, the answer stays exact."""
    frame = spark.range(400_000).selectExpr("timestamp_millis(id) AS ts", "id % 1000 AS k", "id")
    joined = nm.window_join({"A": frame, "B": frame}, on="k", windows="1s", time="ts")
    assert joined.count() == 400_000 + 2 * (400_000 - 1000)


def test_the_same_join_in_sql_is_the_same_plan(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame([], DDL) for name in "ABC"}
    options = JoinOptions("10s", on="k", time="ts", buckets=2)
    inputs = {name: JoinInput(frame.schema, False) for name, frame in frames.items()}
    plan = plan_window_join(inputs, options, SparkEngine(Inputs(spark, frames)), 2)
    db = nm.connect(spark)
    for name, frame in frames.items():
        db.create_stream(name, frame, time="ts")
    statement = (
        "SELECT struct(A.*) AS A, struct(B.*) AS B, struct(C.*) AS C FROM A, B, C "
        "WINDOW = 10 SECONDS WHERE A.k = B.k AND B.k = C.k"
    )
    assert db.explain(statement, buckets=2) == explain_plan(plan)
    assert db.explain(statement, form="dot", buckets=2) == explain_plan(plan, ExplainFormat.DOT)
