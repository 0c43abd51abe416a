"""The health of a query over time, from Spark's reports on its micro-batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from nilometer.database.query_status import HealthSample
from nilometer.database.result_size import ResultSize
from nilometer.database.spread import SpreadCounter
from nilometer.operators.metrics import JoinMetrics, StreamMetrics
from nilometer.spark.metrics import progress_metrics

KEPT: Final = 600_000_000
"""How long samples are kept (microseconds), and"""
MOST: Final = 2_000
"""at most how many."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class HealthHistory:
    """The samples of one query, oldest first, and the last report seen."""

    samples: deque[HealthSample] = field(default_factory=lambda: deque(maxlen=MOST))
    size: ResultSize = field(default_factory=ResultSize)
    counted: int = 0
    """How many results there were at the last sample."""
    last_batch: int = -1
    last_time: int | None = None
    """When the last micro-batch seen began."""
    counter: SpreadCounter = field(default_factory=SpreadCounter)

    def begin(self, size: ResultSize) -> None:
        """Start a run, with the results that exist already."""
        self.size, self.counted = size, size.rows
        self.counter = SpreadCounter()

    def add(
        self, reports: Sequence[Mapping[str, Any]], size: ResultSize, now: int, budget: float
    ) -> list[HealthSample]:
        """Add the new reports, and return the samples made of them."""
        fresh = [one for one in reports if self._is_new(one)]
        self.size = size
        if not fresh:  # results appear before the report of their micro-batch
            return []
        rows, self.counted = size.rows - self.counted, size.rows
        seconds = self._seconds(_began(fresh[-1]), budget)
        samples = []
        for report in fresh:
            began, metrics = _began(report), progress_metrics(report)
            rate = rows / seconds
            one = _sample(report, metrics, self._seconds(began, budget), rate, size, now, budget)
            self.counter.add(metrics, began, now)
            samples.append(self._with_what_lasts(one))
            self.samples.append(samples[-1])
            self.last_batch, self.last_time = int(report["batchId"]), began
        while self.samples[0].time < now - KEPT and len(self.samples) > len(samples):
            self.samples.popleft()
        return samples

    def wants_all(self, last: Mapping[str, Any]) -> bool:
        """Whether micro-batches before the last one have not been seen."""
        return self._is_new(last) and int(last["batchId"]) > self.last_batch + 1

    def recent(self, now: int) -> list[HealthSample]:
        """The samples of the last ten minutes, oldest first."""
        return [one for one in self.samples.copy() if one.time >= now - KEPT]

    def _is_new(self, report: Mapping[str, Any]) -> bool:
        """Whether this micro-batch is new; Spark also reports when there was none.

        A micro-batch that failed and is repeated counts as new.
        """
        is_done = "addBatch" in report["durationMs"]
        return is_done and (self.last_time is None or _began(report) > self.last_time)

    def _with_what_lasts(self, one: HealthSample) -> HealthSample:
        """Fill in the state that a micro-batch without rows does not report."""
        if one.streams or not self.samples:
            return one
        before = self.samples[-1]
        return replace(
            one,
            state_bytes=before.state_bytes,
            late_rows=before.late_rows,
            shed_rows=before.shed_rows,
        )

    def _seconds(self, began: int, budget: float) -> float:
        """How long the rows of a micro-batch were collected."""
        before = began - int(budget * 1000) if self.last_time is None else self.last_time
        return max(0.001, (began - before) / 1e6)


def _sample(
    report: Mapping[str, Any],
    metrics: Sequence[JoinMetrics],
    seconds: float,
    output_rate: float,
    size: ResultSize,
    now: int,
    budget: float,
) -> HealthSample:
    streams = _streams(metrics)
    mark = size.watermark if size.watermark is not None else _least_mark(streams)
    return HealthSample(
        time=_began(report),
        input_rows_per_second=sum(one.rows for one in streams.values()) / seconds,
        output_rows_per_second=output_rate,
        state_bytes=sum(one.state_bytes for one in metrics),
        watermark_lag=None if mark is None else max(0, now - mark),
        late_rows=sum(one.late for one in streams.values()),
        batch_millis=float(report["durationMs"].get("triggerExecution", 0)),
        budget_millis=budget,
        streams=streams,
        shed_rows=sum(one.shed for one in streams.values()),
    )


def _streams(metrics: Sequence[JoinMetrics]) -> dict[str, StreamMetrics]:
    """The streams that a query reads; in a UNION two of them may have the same name."""
    streams: dict[str, StreamMetrics] = {}
    for join in metrics:
        for name, stream in join.streams.items():
            if not stream.is_internal:
                others = sum(1 for one in streams if one.partition(" (")[0] == name)
                streams[f"{name} ({others + 1})" if others else name] = stream
    return streams


def _least_mark(streams: Mapping[str, StreamMetrics]) -> int | None:
    marks = [one.watermark for one in streams.values() if one.watermark is not None]
    return min(marks, default=None)


def _began(report: Mapping[str, Any]) -> int:
    """When a micro-batch began."""
    began = datetime.fromisoformat(str(report["timestamp"]))
    return (began - _EPOCH) // timedelta(microseconds=1)
