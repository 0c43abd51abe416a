"""Functions that are evaluated here against Spark: values, types and errors of awkward values."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.row_errors import RowErrors, Rows, compute, leaving_out
from nilometer.kernels.type_of import type_of
from nilometer.spark.uncomputable import Check, is_nested
from nilometer.sql.expressions.compile_scalar import compile_over
from tests.examples import some_of
from tests.expressions import read_conditions
from tests.function_values import CASTS, LISTS, NUMBERS, TEXTS, TIMES, rows

NEW_YORK = "America/New_York"
LAST_BITS = {
    *(
        [
            "cbrt",
            "exp",
            "expm1",
            "ln",
            "log",
            "log10",
            "log2",
            "log1p",
            "pow",
            "power",
            "hypot",
            "sin",
            "cos",
            "tan",
            "cot",
            "sec",
            "csc",
            "asin",
            "acos",
        ]
    ),
    *(["atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]),
}
"""Functions of which Java does not promise the last bits either."""


def by_spark(spark: SparkSession, texts: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """In which rows Spark cannot compute each expression, and its values in the others."""
    frame = spark.createDataFrame(rows().append_column("row", pa.array(range(rows().num_rows))))
    kinds = [field.dataType for field in frame.selectExpr(*texts).schema]
    checks = [Check(sql, is_nested(kind)) for sql, kind in zip(texts, kinds, strict=True)]
    marked = frame.selectExpr("*", *(f"({one.fails}) AS f{i}" for i, one in enumerate(checks)))
    values = [f"CASE WHEN NOT f{i} THEN ({sql}) END AS e{i}" for i, sql in enumerate(texts)]
    failed = [f"f{i}" for i in range(len(texts))]
    answer = marked.selectExpr("row", *failed, *values).orderBy("row").toArrow()
    return answer.select(failed), answer.select([f"e{i}" for i in range(len(texts))])


def by_us(sql: str, zone: str) -> tuple[list[bool], pa.DataType, dict[int, Any]]:
    """In which rows we cannot compute an expression, its type, and its values in the others."""
    table = rows()
    types = {name: table.schema.field(name).type for name in table.schema.names}
    [bound] = read_conditions(sql, {"x_": types})
    columns = [table.column(one.column).combine_chunks() for one in bound.columns]
    expression = compile_over(bound, bound.columns, {}, zone)
    kind = type_of(expression, [column.type for column in columns])
    with leaving_out(RowErrors()):
        [computed], kept = compute([(expression, kind)], Rows(columns, len(table)))
    assert evaluate(expression, [c.slice(0, 0) for c in columns], 0).type == kind
    places = range(len(table)) if kept is None else kept.tolist()
    values = dict(zip(places, plain(computed), strict=True))
    return [row not in values for row in range(len(table))], kind, values


def nullable(kind: pa.DataType) -> pa.DataType:
    """A type whose items may be NULL: whether they are is not part of it here."""
    if pa.types.is_list(kind):
        return pa.list_(nullable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(nullable(kind.key_type), nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, nullable(one.type)) for one in kind])
    return kind


def plain(column: pa.Array) -> list[Any]:
    """The values of a column; those of times as numbers, since Python does not know all of them."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return values


def same(value: Any, expected: Any, bits: int) -> bool:
    if isinstance(value, float) and isinstance(expected, float):
        if repr(value) == repr(expected):
            return True
        if not (math.isfinite(value) and math.isfinite(expected)):
            return False
        first, second = (struct.unpack("<q", struct.pack("<d", v))[0] for v in (value, expected))
        return abs(first - second) <= bits
    return repr(value) == repr(expected)


def differences(spark: SparkSession, texts: Sequence[str], zone: str) -> Iterator[str]:
    failed, values = by_spark(spark, texts)
    table = rows()
    for number, sql in enumerate(texts):
        try:
            own_failed, kind, own = by_us(sql, zone)
        except Exception as error:  # all are reported at once
            yield f"{sql}: {type(error).__name__} {str(error)[:200]}"
            continue
        expected = values.column(number)
        if nullable(kind) != nullable(expected.type):
            yield f"{sql}: is {kind}, in Spark {expected.type}"
        bits = 8 if sql.split("(")[0] in LAST_BITS else 0
        wrong = 0
        bad = failed.column(number).to_pylist()
        for row, (is_bad, value) in enumerate(zip(bad, plain(expected), strict=True)):
            if is_bad == own_failed[row] and (is_bad or same(own[row], value, bits)):
                continue
            ours = "an error" if own_failed[row] else repr(own[row])
            given = {
                n: str(table.column(n)[row])
                for n in table.schema.names
                if n
                in sql.replace("(", " ")
                .replace(",", " ")
                .replace(")", " ")
                .replace("[", " ")
                .split()
            }
            wrong += 1
            if wrong <= 4:
                theirs = "an error" if is_bad else repr(value)
                yield f"{sql}: {ours}, in Spark {theirs} for {given}"
        if wrong > 4:
            yield f"{sql}: … {wrong} rows differ"


@pytest.fixture
def in_zones(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, whose time zone may be changed."""
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.generated
@pytest.mark.parametrize("texts", [TEXTS, NUMBERS, LISTS], ids=["texts", "numbers", "lists"])
def test_functions_mean_what_they_mean_in_spark(texts: list[str], in_zones: SparkSession) -> None:
    wrong = list(differences(in_zones, some_of(texts), "UTC"))
    assert not wrong, "\n".join(wrong)


@pytest.mark.generated
@pytest.mark.parametrize(
    "zone",
    [*(pytest.param(one, marks=pytest.mark.soak) for one in ("UTC", "Europe/Berlin")), NEW_YORK],
)
def test_times_and_casts_mean_what_they_mean_in_spark(zone: str, in_zones: SparkSession) -> None:
    in_zones.conf.set("spark.sql.session.timeZone", zone)
    wrong = list(differences(in_zones, some_of([*TIMES, *CASTS]), zone))
    assert not wrong, "\n".join(wrong)
