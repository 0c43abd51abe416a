"""The metrics of a running query."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.operators.metrics import JoinMetrics, combine_buckets
from nilometer.spark.emit import METRICS

_PREFIX: Final = "nilometer-"


def metrics(query: StreamingQuery) -> list[JoinMetrics]:
    """The metrics of a streaming query's window joins; one entry per join, none at first."""
    progress = query.lastProgress
    return progress_metrics(progress) if progress is not None else []


def progress_metrics(progress: Any) -> list[JoinMetrics]:
    """The same, from one of Spark's progress reports."""
    observed = progress["observedMetrics"]
    return [
        combine_buckets(_buckets(row))
        for name, row in sorted(observed.items())
        if name.startswith(_PREFIX) and _buckets(row)
    ]


def observe(hosted: DataFrame, operator: str) -> DataFrame:
    """Make Spark's progress reports carry the metrics that the host emits."""
    collected = F.expr(f"collect_list({METRICS}) AS buckets")
    return hosted.observe(f"{_PREFIX}{operator[:8]}", collected)


def _buckets(row: Any) -> list[str]:
    """The collected metrics; Spark Connect returns them in its own kind of row."""
    fields = row.asDict() if hasattr(row, "asDict") else dict(row)
    if "buckets" in fields:
        return list(fields["buckets"] or [])
    values, schema = fields["values"], fields["schema"]
    names = [field["name"] for field in schema["fields"]]
    return list(values[names.index("buckets")] or [])
