"""What a running query has done so far, added up from Spark's progress reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nilometer.spark.metrics import JoinMetrics, progress_metrics


class Tally:
    """Adds up the micro-batches of a query with one window join."""

    def __init__(self, streams: Sequence[str]) -> None:
        self.rows = dict.fromkeys(streams, 0)
        self.results = 0
        self.batches = 0
        self.last: JoinMetrics | None = None
        self._next = 0

    def take(self, reports: Sequence[Any]) -> None:
        """Take in the reports that are new."""
        for report in reports:
            if report["batchId"] < self._next:
                continue
            self._next = report["batchId"] + 1
            for join in progress_metrics(report):
                self._add(join)

    def _add(self, join: JoinMetrics) -> None:
        self.last = join
        self.batches += 1
        self.results += join.results
        for name, stream in join.streams.items():
            self.rows[name] += stream.rows

    @property
    def rows_in(self) -> int:
        return sum(self.rows.values())
