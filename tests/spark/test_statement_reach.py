"""Statements reach Spark's parser with nothing but what they say."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.sql.expressions.function_kinds import AGGREGATES, GENERATORS, WINDOW_FUNCTIONS
from nilometer.sql.expressions.spark_text import safe_functions
from nilometer.sql.expressions.unsafe_functions import UNSAFE

TEXTS = (
    "${env:HOME}",
    "${spark.app.name}",
    "\\",
    "'",
    "\\'",
    "''",
    "' || version() || '",
    "\\' || version() || '",
    "*/ version() /*",
    "-- version()",
    "`x`",
    "\\u0027 || version() || \\u0027",
    "\\047",
    "%\\_",
)


def test_somebody_has_looked_at_every_function_of_spark(spark: SparkSession) -> None:
    functions = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    new = {one for one in functions if any(map(str.isalpha, one))} - UNSAFE - safe_functions()
    assert not new, "do they run code, read files or tell about the machine? list them"
    assert not UNSAFE & safe_functions()


def test_texts_mean_themselves(spark: SparkSession) -> None:
    db = nm.connect(spark)
    db.create_table("T", spark.createDataFrame(pa.table({"k": ["a"]})))
    spelled = ["'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'" for text in TEXTS]
    items = [f"concat(k, {one}) AS c{number}" for number, one in enumerate(spelled)]
    answer = db.sql(f"SELECT {', '.join(items)} FROM T").toArrow().to_pylist()[0]
    assert [answer[f"c{number}"] for number in range(len(TEXTS))] == ["a" + one for one in TEXTS]


def test_functions_that_are_no_scalars_are_known(spark: SparkSession) -> None:
    """Those of the installed Spark, by the groups in which it lists them."""
    java = spark._jvm
    registry = spark._jsparkSession.sessionState().functionRegistry()
    groups: dict[str, set[str]] = {}
    for name in safe_functions():
        known = java.org.apache.spark.sql.catalyst.FunctionIdentifier(
            name, java.scala.Option.apply("builtin"), java.scala.Option.apply("system")
        )
        entry = registry.lookupFunction(known)
        if entry.isDefined():
            groups.setdefault(entry.get().getGroup(), set()).add(name)
    assert groups["agg_funcs"] - AGGREGATES == set()
    assert groups["window_funcs"] - WINDOW_FUNCTIONS == set()
    assert groups["generator_funcs"] - GENERATORS == set()
