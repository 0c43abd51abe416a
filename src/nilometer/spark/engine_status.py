"""The status of an engine as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from nilometer.engine.control import BucketReport


@dataclass(frozen=True)
class EngineStatus:
    """The number of queries that run together and that were moved apart, and other metrics."""

    shared: int = 0
    moved: int = 0
    restarts: int = 0
    """How many times a Spark streaming query has ended and was restarted."""
    batch_seconds: float | None = None
    """The longest of the last micro-batches; None before the first."""


def last_seconds(running: Iterable[StreamingQuery]) -> float | None:
    """The longest of the last micro-batches of Spark's queries."""
    seconds = []
    for query in running:
        with suppress(Exception):  # Spark may have stopped, or has no report yet
            report = query.lastProgress
            if report is not None:
                seconds.append(float(report["durationMs"]["triggerExecution"]) / 1000)
    return max(seconds, default=None)


def progress_of(report: BucketReport) -> dict[str, Any]:
    """A report in Spark's form."""
    content = report.content
    observed = {f"nilometer-{n}": {"buckets": [one]} for n, one in enumerate(content["metrics"])}
    began = datetime.fromtimestamp(report.time / 1_000_000, UTC)
    return {
        "batchId": report.number,
        "timestamp": began.isoformat(),
        "durationMs": {"addBatch": content["millis"], "triggerExecution": content["millis"]},
        "observedMetrics": observed,
    }
