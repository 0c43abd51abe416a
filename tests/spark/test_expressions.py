"""SQL that Nilometer evaluates itself, against Spark, on awkward values; and bucket numbers."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from nilometer.errors import PredicateError
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.expression_types import type_of
from nilometer.spark.buckets import bucket_numbers
from tests.expressions import compiled, read_conditions

COLUMNS = {
    "i": (pa.int32(), [None, 0, 1, -1, 7, 2**31 - 1]),
    "l": (pa.int64(), [None, 0, 1, 2, -7, 2**40]),
    "f": (pa.float32(), [None, 0.0, -0.0, 1.5, math.nan, math.inf]),
    "d": (pa.float64(), [None, 0.0, -0.0, 1.5, math.nan, -math.inf]),
    "n": (pa.decimal128(10, 2), [None, *map(Decimal, ("0.00", "1.50", "-2.25", "7.00", "99.99"))]),
    "s": (pa.string(), [None, "", "a", "ab", "a%b", "b_c"]),
    "t": (
        pa.timestamp("us", tz="UTC"),
        [None, *(datetime(2026, 1, 1, 0, 0, second) for second in (0, 1, 5, 30, 59))],
    ),
    "b": (pa.bool_(), [None, True, False, True, False, True]),
}

EXPRESSIONS = """
x.i = y.i
x.i <> y.l
x.i < y.d
x.f = y.d
x.d < y.d
x.d >= y.f
x.d <=> y.d
NOT x.d <=> y.d
x.n > y.n
x.n = y.i
x.n < y.d
x.s = y.s
x.s < y.s
x.s <= y.s
x.t > y.t
x.b = y.b
x.b AND y.b
x.b OR y.b
NOT x.b
x.b AND NOT y.b OR x.i = 1
x.i IS NULL
x.i IS NOT NULL AND y.i IS NULL
x.i BETWEEN y.l AND 7
x.i NOT BETWEEN 0 AND y.i
x.i IN (1, 7, y.i)
x.i NOT IN (1, 7)
x.i IN (1, NULL)
x.s LIKE 'a%'
x.s LIKE '_b'
x.s LIKE 'a\\\\%b'
x.s NOT LIKE '%b%'
x.l + y.i > 3
x.l - y.l <= 0
x.l * 3 = y.l
x.d + y.i > 1
x.d * y.d < 2
x.n + y.n > 3
x.n - y.i < 0
x.n * y.n >= 2.25
-x.l < y.l
abs(x.l - y.l) < 3
abs(x.d - y.d) < 1.5
abs(x.n) > 2
CASE WHEN x.i = 0 THEN y.l ELSE y.l / x.i END > 1
CASE x.i WHEN 0 THEN true WHEN 1 THEN false END
IF(x.i > y.i, x.b, y.b)
y.i <> 0 AND x.i / y.i > 1
y.i = 0 OR x.i % y.i = 1
y.l <> 0 AND x.l % y.l < 0
y.l <> 0 AND x.l DIV y.l = 3
x.t - y.t < INTERVAL '10' SECOND
x.t + INTERVAL '5' SECONDS > y.t
INTERVAL '1' MINUTE + x.t > y.t
x.t BETWEEN y.t - INTERVAL '4' SECONDS AND y.t
x.i = NULL
x.i <=> NULL
1 = 1.0
x.i = 1.5
x.l > 1e3
x.i > y.i = y.b
""".strip().splitlines()

TYPES = {name: kind for name, (kind, _) in COLUMNS.items()}
STREAMS = {"x": TYPES, "y": TYPES}


def pairs() -> dict[str, pa.Table]:
    """Every value of every column beside every other, in two tables of one length."""
    n = len(COLUMNS["i"][1])
    x = {name: pa.array([v for v in vs for _ in range(n)], t) for name, (t, vs) in COLUMNS.items()}
    y = {name: pa.array(vs * n, kind) for name, (kind, vs) in COLUMNS.items()}
    return {"x": pa.table(x), "y": pa.table(y)}


def test_expressions_mean_what_they_mean_in_spark(spark: SparkSession) -> None:
    tables = pairs()
    columns = {
        f"{stream}_{name}": table.column(name)
        for stream, table in tables.items()
        for name in COLUMNS
    }
    n = len(tables["x"])
    frame = spark.createDataFrame(pa.table({"row": pa.array(range(n)), **columns}))
    structs = [
        "named_struct({}) AS {}".format(
            ", ".join(f"'{name}', {stream}_{name}" for name in COLUMNS), stream
        )
        for stream in ("x", "y")
    ]
    answers = [f"({sql}) AS e{i}" for i, sql in enumerate(EXPRESSIONS)]
    by_spark = (
        frame.selectExpr("row", *structs).selectExpr("row", *answers).orderBy("row").toArrow()
    )
    for number, sql in enumerate(EXPRESSIONS):
        # One condition, not split at its ANDs.
        [condition] = read_conditions(f"({sql}) OR false", STREAMS)
        own = [tables[c.stream].column(c.column).combine_chunks() for c in condition.columns]
        found = evaluate(compiled(condition), own, n)
        expected = by_spark.column(f"e{number}").combine_chunks()
        assert found.cast(pa.bool_()).to_pylist() == expected.to_pylist(), sql


@pytest.mark.parametrize(
    "sql", ["x.l / y.l > 1", "x.l % y.l = 1", "x.l * 9223372036854775807 > 1", "-x.i + y.i > 0"]
)
def test_arithmetic_that_fails_in_spark_fails_here(sql: str, spark: SparkSession) -> None:
    tables = pairs()
    [condition] = read_conditions(sql, STREAMS)
    columns = [tables[c.stream].column(c.column).combine_chunks() for c in condition.columns]
    if sql.startswith("-"):
        columns = [pa.array([-(2**31)], pa.int32()), pa.array([0], pa.int32())]
    with pytest.raises(PredicateError):
        evaluate(compiled(condition), columns, len(columns[0]))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("x.s > y.i", "cannot apply > to STRING and INT"),
        ("x.t > y.i", "cannot apply > to TIMESTAMP and INT"),
        ("x.b + y.i > 1", "cannot apply + to BOOLEAN and INT"),
        ("x.i OR y.b", "OR needs a condition"),
        ("abs(x.s) > y.i", "abs() needs a number or an interval"),
        ("x.i LIKE 'a' OR y.b", "LIKE needs a string"),
        ("CASE WHEN y.b THEN x.i ELSE x.s END = 1", "the branches of CASE have different types"),
        ("x.n / y.n > 1", "/ of DECIMAL values is not available across streams"),
    ],
)
def test_expressions_without_a_type(sql: str, text: str) -> None:
    [condition] = read_conditions(sql, STREAMS)
    kinds = [COLUMNS[column.column][0] for column in condition.columns]
    with pytest.raises(PredicateError) as caught:
        type_of(compiled(condition), kinds)
    assert caught.value.message == text


@pytest.mark.parametrize("buckets", [1, 2, 3, 8, 40])
def test_every_bucket_has_a_partition_of_its_own(buckets: int, spark: SparkSession) -> None:
    numbers = bucket_numbers(buckets)
    assert 0 in numbers
    rows = spark.createDataFrame([(int(n),) for n in numbers], "bucket INT")
    placed = rows.repartition(buckets, "bucket").selectExpr("spark_partition_id() AS p").collect()
    assert len({row.p for row in placed}) == buckets
