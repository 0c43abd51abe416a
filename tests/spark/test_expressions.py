"""SQL that Nilometer evaluates itself, against Spark, on awkward values; and bucket numbers."""

from __future__ import annotations

import math
import random
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException, ParseException
from pyspark.sql import SparkSession

from nilometer.errors import PredicateError
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.type_of import type_of
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.relations import analysis_kept_quiet
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
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
    "a": (
        pa.date32(),
        [
            None,
            date(2026, 1, 1),
            date(2025, 12, 31),
            date(2026, 1, 2),
            date(1969, 12, 31),
            date.min,
        ],
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
x.t > TIMESTAMP '2026-01-01 00:00:05Z'
x.t <= TIMESTAMP '2026-01-01 01:00:05+01:00'
x.t = TIMESTAMP '2026-01-01T00:00:30-00:00'
x.t < TIMESTAMP '2026-01-01 18:00:05.5+18:00'
x.t - TIMESTAMP '2025-12-31 23:59:59.999999Z' > INTERVAL '10' SECONDS
TIMESTAMP '2026-01-01 00:00:00Z' + INTERVAL '5' SECONDS < y.t
TIMESTAMP_LTZ '2026-01-01 00:00:05Z' = x.t
x.t IN (CAST('2026-01-01 00:00:05Z' AS TIMESTAMP), y.t)
x.a = DATE '2026-01-01'
x.a < y.a
DATE '1969-12-31' <= x.a
x.a IN (CAST('2026-01-01' AS DATE), y.a)
x.a BETWEEN DATE '2025-12-31' AND y.a
x.i = NULL
x.i <=> NULL
1 = 1.0
x.i = 1.5
x.l > 1e3
x.i > y.i = y.b
""".strip().splitlines()

VALUES = """
COALESCE(x.i, y.l)
COALESCE(x.i, y.l, x.d, 0)
COALESCE(x.n, y.i)
COALESCE(x.s, 'none')
COALESCE(x.i, 1 / NULLIF(y.i, 0))
COALESCE(NULL, x.t, y.t)
COALESCE(x.l, 1) DIV COALESCE(NULLIF(y.l, 0), 1)
IFNULL(x.f, y.d)
NVL(x.b, y.b)
NULLIF(x.i, y.l)
NULLIF(x.d, y.d)
NULLIF(x.s, 'a')
LEAST(x.i, y.l)
LEAST(x.d, y.d, 1)
LEAST(x.s, y.s)
GREATEST(x.d, y.f)
LEAST(x.t, y.t)
LEAST(x.n, y.i)
COALESCE(x.t, TIMESTAMP '2026-01-01 00:00:05.1Z')
LEAST(x.t, TIMESTAMP '2026-01-01 00:00:05.123456-03:30')
TIMESTAMP '1900-01-01 00:00:00Z'
COALESCE(x.a, DATE '2026-02-28')
GREATEST(x.a, y.a, DATE '2026-01-01')
NULLIF(x.a, DATE '2026-01-01')
CASE WHEN x.b THEN x.a ELSE DATE '0001-01-01' END
DATE '1582-10-10'
CAST(x.i AS BIGINT)
CAST(x.i AS DOUBLE)
CAST(x.i AS FLOAT)
CAST(x.i AS DECIMAL(12, 2))
CAST(x.i AS BOOLEAN)
CAST(x.i AS STRING)
CAST(x.l AS STRING)
CAST(x.l AS DECIMAL(20))
CAST(x.l AS FLOAT)
CAST(x.b AS STRING)
CAST(x.b AS INT)
CAST(x.b AS DOUBLE)
CAST(x.b AS DECIMAL(3, 1))
CAST(x.d AS BOOLEAN)
CAST(x.d AS FLOAT)
CAST(x.f AS DOUBLE)
CAST(x.n AS BOOLEAN)
CAST(x.n AS INT)
CAST(x.n AS DOUBLE)
CAST(x.n AS FLOAT)
CAST(x.n AS DECIMAL(8, 1))
CAST(x.n AS DECIMAL(12, 4))
CAST(x.n AS TINYINT)
CAST(x.s AS STRING)
CAST(NULL AS INT)
x.i::BIGINT + 1
CAST(CASE WHEN abs(x.d) < 10 THEN x.d END AS INT)
CAST(CASE WHEN abs(x.d) < 10 THEN x.d END AS DECIMAL(4, 0))
CAST(x.d AS DECIMAL(4, 1))
ROUND(x.d)
ROUND(x.d, 1)
ROUND(x.f, 1)
ROUND(x.f)
ROUND(x.n)
ROUND(x.n, 1)
ROUND(x.n, 5)
ROUND(x.n, -1)
ROUND(x.n, -12)
ROUND(x.l)
ROUND(x.l, 2)
ROUND(x.l, -1)
ROUND(x.l, -9)
ROUND(CASE WHEN x.i < 10 THEN x.i END, -1)
FLOOR(CASE WHEN x.d > -9 THEN x.d - y.i END)
CEIL(CASE WHEN x.d > -9 THEN x.d - y.i END)
CEIL(CASE WHEN x.f < 9 THEN x.f END)
CEILING(x.n)
FLOOR(x.n)
FLOOR(x.i)
CEIL(x.l)
x.s || y.s
x.s || '-' || y.s
CONCAT(x.s, y.i, x.b, 'ß')
CONCAT(x.s)
LENGTH(x.s || 'äöü€𝄞')
CHAR_LENGTH(x.s)
""".strip().splitlines()

TYPES = {name: kind for name, (kind, _) in COLUMNS.items()}
STREAMS = {"x": TYPES, "y": TYPES}


def pairs() -> dict[str, pa.Table]:
    """Every value of every column beside every other, in two tables of one length."""
    n = len(COLUMNS["i"][1])
    x = {name: pa.array([v for v in vs for _ in range(n)], t) for name, (t, vs) in COLUMNS.items()}
    y = {name: pa.array(vs * n, kind) for name, (kind, vs) in COLUMNS.items()}
    return {"x": pa.table(x), "y": pa.table(y)}


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession) -> pa.Table:
    """What Spark says to all expressions, in columns named by their texts."""
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
    texts = [*EXPRESSIONS, *VALUES]
    answers = [f"({sql}) AS e{i}" for i, sql in enumerate(texts)]
    answered = frame.selectExpr("row", *structs).selectExpr("row", *answers).orderBy("row")
    return answered.drop("row").toArrow().rename_columns(texts)


def test_expressions_mean_what_they_mean_in_spark(by_spark: pa.Table) -> None:
    tables = pairs()
    for sql in EXPRESSIONS:
        # One condition, not split at its ANDs.
        [condition] = read_conditions(f"({sql}) OR false", STREAMS)
        own = [tables[c.stream].column(c.column).combine_chunks() for c in condition.columns]
        values = evaluate(compiled(condition), own, len(by_spark))
        assert values.cast(pa.bool_()).to_pylist() == by_spark.column(sql).to_pylist(), sql


@pytest.mark.parametrize("sql", VALUES)
def test_values_and_their_types_are_spark_s(sql: str, by_spark: pa.Table) -> None:
    tables = pairs()
    [value] = read_conditions(sql, STREAMS)
    own = [tables[c.stream].column(c.column).combine_chunks() for c in value.columns]
    expression = compiled(value)
    kind = type_of(expression, [column.type for column in own])
    values = evaluate(expression, own, len(by_spark))
    assert (values.type, kind) == (by_spark.column(sql).type,) * 2
    assert repr(values.to_pylist()) == repr(by_spark.column(sql).to_pylist())


def awkward_doubles() -> list[float]:
    """Halves, numbers near them, and numbers of all sizes."""
    chance = random.Random(1)
    halves = [chance.randrange(-9999, 9999) / 10**d for d in range(5) for _ in range(60)]
    near = [math.nextafter(value, chance.choice([-math.inf, math.inf])) for value in halves]
    others = [chance.uniform(-1, 1) * 10 ** chance.randrange(-20, 25) for _ in range(300)]
    special = [0.0, -0.0, -0.4, math.nan, math.inf, 2.675, 1e22, 1e23, 2.0**52 + 0.5, 5e-324]
    return [*halves, *near, *others, *special]


def test_doubles_are_rounded_as_spark_rounds_them(spark: SparkSession) -> None:
    values = awkward_doubles()
    table = pa.table({"row": pa.array(range(len(values))), "d": pa.array(values, pa.float64())})
    digits = range(-3, 7)
    texts = [f"ROUND(d, {n})" for n in digits] + ["CAST(CAST(d AS FLOAT) AS DOUBLE)"]
    texts += [f"CAST(IF(abs(d) < 1e15, d, NULL) AS DECIMAL(30, {n}))" for n in (0, 2, 9)]
    answers = [f"{text} AS e{i}" for i, text in enumerate(texts)]
    by_spark = spark.createDataFrame(table).orderBy("row").selectExpr(*answers).toArrow()
    for number, text in enumerate(texts):
        [value] = read_conditions(text.replace("(d", "(x.d").replace(", d", ", x.d"), STREAMS)
        rounded = evaluate(compiled(value), [table.column("d").combine_chunks()], len(values))
        assert repr(rounded.to_pylist()) == repr(by_spark.column(number).to_pylist()), text


@pytest.mark.parametrize(
    "sql",
    [
        "CAST(x.l AS INT)",
        "CAST(x.i AS TINYINT)",
        "CAST(x.d AS INT)",
        "CAST(x.f AS BIGINT)",
        "CAST(x.n * 10 AS TINYINT)",
        "CAST(x.n AS DECIMAL(3, 2))",
        "CAST(x.l AS DECIMAL(5, 0))",
        "CAST(x.l * 1e0 AS DECIMAL(5, 0))",
        "ROUND(x.i, -1)",
        "FLOOR(x.d)",
        "CEIL(x.f)",
    ],
)
def test_numbers_that_do_not_fit_are_errors_as_in_spark(sql: str, spark: SparkSession) -> None:
    tables = pairs()
    [value] = read_conditions(sql, STREAMS)
    columns = [tables[c.stream].column(c.column).combine_chunks() for c in value.columns]
    with pytest.raises(PredicateError, match="arithmetic overflow"):
        evaluate(compiled(value), columns, len(columns[0]))
    frame = spark.createDataFrame(tables["x"]).selectExpr(sql.replace("x.", ""))
    with analysis_kept_quiet(), pytest.raises(ArithmeticException):
        frame.collect()


@pytest.mark.parametrize(
    "text",
    [
        "DATE '2026-02-30'",
        "DATE '2026-13-01'",
        "TIMESTAMP '2026-01-01Z'",
        "TIMESTAMP '2026-01-01+02:00'",
        "TIMESTAMP '2026-01-01 00:00Z'",
        "TIMESTAMP '2026-01-01 24:00:00Z'",
        "TIMESTAMP '2026-01-01 00:00:60Z'",
        "TIMESTAMP '2026-01-01 00:00:00+18:01'",
        "TIMESTAMP '2026-01-01 00:00:00+01:60'",
    ],
)
def test_dates_and_instants_that_spark_refuses_are_no_constants(
    text: str, spark: SparkSession
) -> None:
    [condition] = read_conditions(f"x.t = {text}", STREAMS)
    with pytest.raises(NotInSubsetError):
        compiled(condition)
    with analysis_kept_quiet(), pytest.raises(ParseException, match="INVALID_TYPED_LITERAL"):
        spark.sql(f"SELECT {text}")


@pytest.mark.parametrize(
    "text", ["TIMESTAMP '0001-01-01 00:00:00+01:00'", "TIMESTAMP '9999-12-31 23:59:59-01:00'"]
)
def test_instants_that_python_does_not_know_are_left_to_spark(text: str) -> None:
    [condition] = read_conditions(f"x.t = {text}", STREAMS)
    with pytest.raises(NotInSubsetError):
        compiled(condition)


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
        ("IF(x.i, y.b, x.b)", "IF needs a condition"),
        ("COALESCE(x.i, y.t)", "the arguments of COALESCE have different types"),
        ("CAST(x.f AS STRING)", "CAST of FLOAT values to STRING is not available here"),
        ("CAST(x.b AS DATE)", "CAST of BOOLEAN values to DATE is not available here"),
        ("x.s || y.f", "CONCAT with FLOAT as argument 2 is not available here"),
        ("ROUND(x.s)", "ROUND of STRING values is not available here"),
        ("LENGTH(x.f)", "LENGTH of FLOAT values is not available here"),
        ("abs(x.s) > y.i", "abs() needs a number or an interval"),
        (
            "x.s LIKE y.s",
            "LIKE with a computed pattern, format or unit is not available here",
        ),
        ("CASE WHEN y.b THEN x.i ELSE x.s END = 1", "the branches of CASE have different types"),
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
