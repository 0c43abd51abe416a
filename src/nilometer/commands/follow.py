"""`nilometer sql --follow`: a query that runs until Ctrl-C, or until it has caught up."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from nilometer.commands.answers import headings_of, is_changelog, require_changing
from nilometer.commands.destination import GrowingFile
from nilometer.commands.options import Follow, Format, Output
from nilometer.commands.progress import Progress
from nilometer.commands.row_order import read_order
from nilometer.commands.sinks import (
    AnswerToScreen,
    Guarded,
    InOrderOfTime,
    LinesToFile,
    LinesToScreen,
    Sink,
    TableToScreen,
)
from nilometer.commands.tables import TableView
from nilometer.commands.tally import ROWS_OUT, Tally
from nilometer.errors import InputError

_LOOK_EVERY: Final = 0.25
_BATCH_EVERY: Final = "500 milliseconds"
_LAST_BATCH: Final = 10.0


def follow_query(
    answer: DataFrame,
    sql: str,
    output: Output,
    follow: Follow,
    progress: Progress,
    screen: Console,
) -> Tally:
    """Run a query to its end; what it has done."""
    tally = Tally()
    with _checkpoint(follow) as checkpoint, _stop_signals() as stops:
        growing = GrowingFile(output.path, checkpoint) if output.path is not None else None
        sink = _sink(answer, output, growing, progress, screen)
        if follow.answer:
            sink = _answer_sink(answer, sql, output, progress, screen)
        elif sink is not None and is_changelog(answer):
            sink = InOrderOfTime(sink)
        guarded = Guarded(sink) if sink is not None else None
        query = _start(answer, output, follow, checkpoint, guarded)
        try:
            _watch(query, tally, progress, stops)
            failure = guarded.failure if guarded is not None else None
            failure = failure or query.exception()
            if failure is not None:
                raise failure
            _finish(query, tally, progress, stops)
        except (Py4JError, ConnectionError):
            if not stops[0].is_set():
                raise  # else Java was asked to stop too, and was quicker
    return tally


def _start(
    answer: DataFrame, output: Output, follow: Follow, checkpoint: Path, sink: Guarded | None
) -> StreamingQuery:
    counted = answer.observe(ROWS_OUT, F.count(F.lit(1)).alias("rows"))
    writer = counted.writeStream.option("checkpointLocation", str(checkpoint))
    if follow.catch_up:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=_BATCH_EVERY)
    if sink is None:
        return writer.format("parquet").option("path", str(output.path)).start()
    return writer.foreachBatch(sink).start()


def _sink(
    answer: DataFrame,
    output: Output,
    growing: GrowingFile | None,
    progress: Progress,
    screen: Console,
) -> Sink | None:
    """What writes the rows; None where Spark itself does."""
    if output.form is Format.PARQUET:
        return None
    if output.form is Format.TABLE:
        return TableToScreen(TableView(screen, headings_of(answer)), output.limit, progress)
    if growing is None:
        return LinesToScreen(output.form, progress)
    return LinesToFile(output.form, growing)


def _answer_sink(
    answer: DataFrame, sql: str, output: Output, progress: Progress, screen: Console
) -> Sink:
    """What shows the answer itself as it changes."""
    require_changing(answer, "--answer")
    headings = headings_of(answer)[:-2]
    return AnswerToScreen(screen, headings, read_order(sql, headings), output.limit, progress)


def _watch(
    query: StreamingQuery, tally: Tally, progress: Progress, stops: list[threading.Event]
) -> None:
    """Show how it goes until the query ends or is asked to."""
    while query.isActive and not stops[0].wait(_LOOK_EVERY):
        tally.take(query.recentProgress)
        progress.say(f"{tally.line(time.time_ns() // 1000)} – Ctrl-C ends")


def _finish(
    query: StreamingQuery, tally: Tally, progress: Progress, stops: list[threading.Event]
) -> None:
    """Stop the query, after the micro-batch that is being worked on if that takes no age."""
    deadline = time.monotonic() + _LAST_BATCH
    tally.take(query.recentProgress)
    before = tally.batches
    progress.say("Finishing the last micro-batch – Ctrl-C stops at once")
    while query.isActive and query.status["isTriggerActive"] and tally.batches == before:
        if time.monotonic() > deadline or stops[1].wait(_LOOK_EVERY / 2):
            break
        tally.take(query.recentProgress)
    query.stop()
    tally.take(query.recentProgress)


@contextmanager
def _checkpoint(follow: Follow) -> Iterator[Path]:
    if follow.checkpoint is None:
        with tempfile.TemporaryDirectory(prefix="nilometer-", ignore_cleanup_errors=True) as made:
            yield Path(made)
        return
    try:
        follow.checkpoint.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot keep a checkpoint in {follow.checkpoint}", detail=error.strerror
        ) from None
    yield follow.checkpoint.absolute()


@contextmanager
def _stop_signals() -> Iterator[list[threading.Event]]:
    """Events that are set when the first and the second request to stop arrive."""
    stops = [threading.Event(), threading.Event()]

    def take(*_: object) -> None:
        stops[1 if stops[0].is_set() else 0].set()

    before = {name: signal.signal(name, take) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stops
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
