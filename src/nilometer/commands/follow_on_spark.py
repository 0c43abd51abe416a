"""`nilometer sql --follow` on Spark: a query that runs until Ctrl-C, or until it has caught up."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from nilometer.commands.following import make_sink, open_checkpoint, stop_signals
from nilometer.commands.options import Follow, Output
from nilometer.commands.progress import Progress
from nilometer.commands.sinks import Sink
from nilometer.commands.spark_answer import SparkAnswer
from nilometer.commands.tally import Tally
from nilometer.spark.metrics import progress_metrics

_LOOK_EVERY: Final = 0.25
_BATCH_EVERY: Final = "500 milliseconds"
_LAST_BATCH: Final = 10.0
_ROWS_OUT: Final = "rows-out"
"""The name under which Spark's reports give the number of rows that a micro-batch emitted."""


def follow_query(
    answer: SparkAnswer,
    sql: str,
    output: Output,
    follow: Follow,
    progress: Progress,
    screen: Console,
) -> Tally:
    """Run a query to its end; return its summary."""
    reports = Reports()
    with open_checkpoint(follow) as checkpoint, stop_signals() as stops:
        sink = make_sink(answer.headings, sql, output, follow, checkpoint, progress, screen)
        guarded = Guarded(sink) if sink is not None else None
        query = _start(answer.frame, output, follow, checkpoint, guarded)
        try:
            _watch(query, reports, progress, stops)
            failure = guarded.failure if guarded is not None else None
            failure = failure or query.exception()
            if failure is not None:
                raise failure
            _finish(query, reports, progress, stops)
        except (Py4JError, ConnectionError):
            if not stops[0].is_set():
                raise  # otherwise Java was asked to stop too, and was faster
    return reports.tally


@dataclass
class Guarded:
    """A sink that keeps its exception, which Spark would return only as text."""

    sink: Sink
    failure: BaseException | None = field(default=None, init=False)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        try:
            self.sink.write(SparkAnswer(rows), batch)
        except BaseException as error:
            self.failure = error
            raise RuntimeError("the rows could not be written") from None


class Reports:
    """Adds up Spark's progress reports."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._next = 0

    def take(self, reports: Sequence[Any]) -> None:
        """Add the reports that are new."""
        if reports and reports[-1]["inputRowsPerSecond"] >= 0:  # at first it is NaN
            self.tally.rate = reports[-1]["inputRowsPerSecond"]
        for report in reports:
            if report["batchId"] < self._next:
                continue
            joins = progress_metrics(report)
            if joins:  # Spark also reports repeatedly that nothing has arrived
                self._next = report["batchId"] + 1
                counted = report["observedMetrics"].get(_ROWS_OUT)
                self.tally.add(joins, counted["rows"] if counted is not None else 0)


def _start(
    answer: DataFrame, output: Output, follow: Follow, checkpoint: Path, sink: Guarded | None
) -> StreamingQuery:
    counted = answer.observe(_ROWS_OUT, F.count(F.lit(1)).alias("rows"))
    writer = counted.writeStream.option("checkpointLocation", str(checkpoint))
    if follow.catch_up:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=_BATCH_EVERY)
    if sink is None:
        return writer.format("parquet").option("path", str(output.path)).start()
    return writer.foreachBatch(sink).start()


def _watch(
    query: StreamingQuery, reports: Reports, progress: Progress, stops: list[threading.Event]
) -> None:
    """Show progress until the query ends or is asked to."""
    while query.isActive and not stops[0].wait(_LOOK_EVERY):
        reports.take(query.recentProgress)
        progress.say(f"{reports.tally.line(time.time_ns() // 1000)} – Ctrl-C ends")


def _finish(
    query: StreamingQuery, reports: Reports, progress: Progress, stops: list[threading.Event]
) -> None:
    """Stop the query, after the current micro-batch unless that takes too long."""
    deadline = time.monotonic() + _LAST_BATCH
    reports.take(query.recentProgress)
    before = reports.tally.batches
    progress.say("Finishing the last micro-batch – Ctrl-C stops at once")
    while query.isActive and query.status["isTriggerActive"] and reports.tally.batches == before:
        if time.monotonic() > deadline or stops[1].wait(_LOOK_EVERY / 2):
            break
        reports.take(query.recentProgress)
    query.stop()
    reports.take(query.recentProgress)
