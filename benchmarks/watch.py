"""Runs a streaming query over all its input and watches it: time, results, memory, state."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.state_files import bytes_to_restart
from nilometer.spark.metrics import progress_metrics

_SAMPLE_EVERY: Final = 0.5


@dataclass(frozen=True)
class Run:
    """The figures of a query; its first micro-batches, a warm-up, are not timed."""

    rows: int
    results: int
    batch_ms: list[int]
    rows_per_batch: float
    peak_bytes: int
    state_file_bytes: int
    state_memory_bytes: int
    phases_ms: dict[str, float]

    @property
    def mean_ms(self) -> float:
        return sum(self.batch_ms) / len(self.batch_ms)

    @property
    def rows_per_second(self) -> float:
        return self.rows_per_batch / self.mean_ms * 1000

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "mean_ms": self.mean_ms, "rows_per_second": self.rows_per_second}


Traffic = Callable[[Any], tuple[int, int]]
"""Rows in and out of one micro-batch, read from a report."""


def traffic_by_spark(report: Any) -> tuple[int, int]:
    """As Spark counts them: the rows of its sources, and those that `counted` observes."""
    observed = report["observedMetrics"].get("counted")
    return report["numInputRows"], int(observed["rows"]) if observed is not None else 0


def traffic_by_nilometer(report: Any) -> tuple[int, int]:
    """As a window join counts them, where Spark only sees envelopes."""
    joins = progress_metrics(report)
    rows = sum(stream.rows for join in joins for stream in join.streams.values())
    return rows, sum(join.results for join in joins)


def watch(
    start: Callable[[Path], StreamingQuery], warm_up: int, traffic: Traffic = traffic_by_spark
) -> Run:
    """Start a query, given a folder for its checkpoint, and wait for its end."""
    folder = Path(tempfile.mkdtemp(prefix="nilometer-bench-"))
    try:
        with PeakMemory() as memory:
            query = start(folder / "checkpoint")
            query.awaitTermination()
        reports = [r for r in query.recentProgress if any(traffic(r))]
        timed = reports[warm_up:]
        state = reports[-1]["stateOperators"]
        phases = sorted({phase for report in timed for phase in report["durationMs"]})
        return Run(
            rows=sum(traffic(r)[0] for r in reports),
            results=sum(traffic(r)[1] for r in reports),
            batch_ms=[r["durationMs"]["triggerExecution"] for r in timed],
            rows_per_batch=sum(traffic(r)[0] for r in timed) / len(timed),
            peak_bytes=memory.peak,
            state_file_bytes=bytes_to_restart(folder / "checkpoint"),
            state_memory_bytes=sum(operator["memoryUsedBytes"] for operator in state),
            phases_ms={
                p: sum(r["durationMs"].get(p, 0) for r in timed) / len(timed) for p in phases
            },
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def counted(frame: DataFrame) -> DataFrame:
    """The same rows, counted in the reports of the query."""
    return frame.observe("counted", F.count(F.lit(1)).alias("rows"))


class PeakMemory:
    """The peak memory of this process and all its descendants (shared parts count once)."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        own = psutil.Process()
        while not self._done.wait(_SAMPLE_EVERY):
            total = 0
            for process in [own, *own.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)
