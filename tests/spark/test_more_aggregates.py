"""Aggregates of an order, of pairs and of all values: what Spark itself says of a batch."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession

import nilometer as nm

CALLS = (
    "bool_and(v > 1)",
    "bool_or(v > 6)",
    "count_if(v > 2)",
    "max_by(s, n)",
    "min_by(v, n)",
    "min_by(n, ts)",
    "max_by(n, ts)",
    "size(collect_list(v))",
    "sort_array(collect_set(s))",
    "mode(k)",
    "round(corr(v, n), 6)",
    "round(covar_samp(v, n), 6)",
    "round(skewness(v), 6)",
    "round(kurtosis(v), 6)",
    "round(regr_slope(v, n), 6)",
    "round(regr_intercept(v, n), 6)",
    "round(regr_r2(v, n), 6)",
    "regr_count(v, n)",
    "bit_and(n + 64)",
    "bit_or(n - 100)",
    "bit_xor(k)",
    "max(struct(v, s, n)).n",
    "min(struct(v, s, n)).n",
    "approx_percentile(v, 0.25)",
    "percentile_disc(0.75) WITHIN GROUP (ORDER BY v)",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY v)",
    "COUNT(DISTINCT s, k)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY v)",
    "string_agg(s, ',') WITHIN GROUP (ORDER BY n)",
)
INSIDE = ("size(", "sort_array(")
"""What is computed of a result by Spark, after the query."""


@pytest.mark.parametrize("source", ["TUMBLE(S, 1 HOUR)", "S [RANGE 1 HOUR]"])
def test_aggregates_are_those_of_spark(source: str, spark: SparkSession) -> None:
    """Values of `n` are distinct and rise with the time, so that orders have no ties."""
    random = Random(6)
    rows = [
        (
            random.randrange(3),
            random.choice([None, float(random.randrange(9))]),
            random.choice([None, "a", "b", "c"]),
            number,
        )
        for number in range(200)
    ]
    frame = spark.createDataFrame(rows, "k INT, v DOUBLE, s STRING, n INT").selectExpr(
        "*", "TIMESTAMP '2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, n) AS ts"
    )
    frame.createOrReplaceTempView("S")
    names = [f"c{number}" for number in range(len(CALLS))]
    shown = ", ".join(f"{call} AS {name}" for call, name in zip(CALLS, names, strict=True))
    right = spark.sql(f"SELECT k % 2 AS g, {shown} FROM S GROUP BY g").collect()
    asked, behind = [], []
    for call, name in zip(CALLS, names, strict=True):
        outer = next((one for one in INSIDE if call.startswith(one)), None)
        asked.append(f"{call[len(outer) : -1] if outer else call} AS {name}")
        behind.append(f"{outer}{name}) AS {name}" if outer else name)
    db = nm.connect(spark)
    db.create_stream("S", frame, time="ts")
    changes = db.sql(f"SELECT k % 2 AS g, {', '.join(asked)} FROM {source} GROUP BY k % 2")
    answer = changes if "TUMBLE" in source else nm.snapshot(changes, at="2026-01-01 00:03:19")
    ours = answer.selectExpr("g", *behind).collect()
    for one, other in zip(sorted(ours, key=repr), sorted(right, key=repr), strict=True):
        assert one.asDict() == other.asDict()
