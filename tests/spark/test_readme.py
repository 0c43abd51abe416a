"""The example of the README runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.spark.metrics import progress_metrics


def test_the_readme_example_runs(spark: SparkSession) -> None:
    text = Path(__file__).parents[2].joinpath("README.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example.replace("awaitTermination(20)", "awaitTermination(12)"), names)
    query = names["query"]
    query.stop()
    assert query.exception() is None
    [metrics] = nm.metrics(query)
    assert set(metrics.streams) == {"A", "B", "C"}
    assert sum(progress_results(report) for report in query.recentProgress) > 0


def progress_results(report: Any) -> int:
    return sum(join.results for join in progress_metrics(report))
