"""One-off queries that Spark's tasks answer in parts.

Spark gets no query text: it runs a Python function over part numbers. Each task queries its part
of the log in a sandbox of its own, and its answer is sent as bytes that Spark does not parse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from nilometer.errors import InputError, SqlError, TimeLimitError, TooLargeError
from nilometer.log.exact_range import require_same_log
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.spans import Span, gathered
from nilometer.past.frames import error_words, read_error, read_table, table_bytes
from nilometer.past.guarded import GuardedSandbox
from nilometer.past.question import TableUse
from nilometer.past.sandbox import AnswerLimits, Cancelling
from nilometer.past.stored import LogTable
from nilometer.spark.failures import explained_failures
from nilometer.spark.pools import started_in_pool
from nilometer.spark.ship import ship_function
from nilometer.spark.time_limit import time_limited

POOL: Final = "past"
_MEMORY: Final = 512 << 20
"""The most memory (bytes) that a task's sandbox may use."""
_MOST_BYTES: Final = 256 << 20
"""The most bytes that all parts together may return."""
_SHARE: Final = 64 << 20
"""The most bytes that one part may return."""
_PART_BYTES: Final = 256 << 20
"""About how many bytes a task reads, if that makes enough tasks for all cores."""
_ROWS: Final = 50_000
_ROW: Final = "answer BINARY, error STRING"
"""What tasks return: rows, or why there are none."""
_REFUSED: Final = (InputError, SqlError, TimeLimitError, TooLargeError)
"""Errors that a retry would raise again."""


@dataclass(frozen=True)
class PartsOfLog:
    """A query over the parts of a log."""

    location: str
    layout: LogLayout
    log_id: str
    name: str
    """Its name in the query."""
    use: TableUse
    sql: str
    others: Mapping[str, pa.Table]
    """Further tables of the query."""


def has_tasks(session: SparkSession | None) -> bool:
    """Whether a session can cancel its jobs: it is not a client, and has not stopped."""
    context = getattr(session, "_sc", None)
    try:
        return isinstance(context, SparkContext) and not context._jsc.sc().isStopped()
    except Exception:  # whatever it is: there is no working Spark
        return False


def ask_parts(
    session: SparkSession,
    asked: PartsOfLog,
    spans: Sequence[Span],
    schema: pa.Schema,
    seconds: float | None,
    cancelling: Cancelling | None = None,
) -> pa.Table:
    """The answers of all parts, with this schema, in the order of the log."""
    context = session.sparkContext
    wanted = max(context.defaultParallelism, sum(one.bytes for one in spans) // _PART_BYTES)
    places = [(one.start, one.end) for one in gathered(spans, wanted)]
    if not places:
        return schema.empty_table()
    limits = AnswerLimits(bytes=_SHARE, seconds=seconds)
    work = ship_function(_AskPart(asked, places, tuple(schema.names), limits))
    frame = session.range(0, len(places), 1, len(places)).mapInArrow(work, _ROW)
    with (
        explained_failures(),
        started_in_pool(session, POOL),
        time_limited(context, seconds, cancelling),
    ):
        answers = frame.toArrow()
    for error in answers.column("error").drop_null().to_pylist():
        raise read_error(json.loads(error))
    if answers.nbytes > _MOST_BYTES:
        raise _too_large()
    tables = [read_table(one.as_buffer()) for one in answers.column(0)]
    return pa.concat_tables([schema.empty_table(), *tables])


@dataclass(frozen=True)
class _AskPart:
    """The work of a task."""

    asked: PartsOfLog
    places: Sequence[tuple[Position, Position]]
    names: tuple[str, ...]
    limits: AnswerLimits

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                try:
                    rows = self._answer(self.places[number]).rename_columns(list(self.names))
                except _REFUSED as error:  # Spark would retry if it knew of the error
                    yield _row(None, json.dumps(error_words(error)))
                    return
                for some in rows.to_batches(_ROWS):
                    yield _row(table_bytes(pa.Table.from_batches([some])).to_pybytes(), None)

    def _answer(self, span: tuple[Position, Position]) -> pa.Table:
        asked = self.asked
        reader = LogReader.open(asked.location, asked.layout)
        require_same_log(reader, asked.location, asked.log_id)
        rows = LogTable(asked.location, reader, span).stream(asked.use)
        tables = {**asked.others, asked.name: rows}
        sandbox = GuardedSandbox(_MEMORY)
        try:
            sandbox.require_safe(asked.sql, tables)
            return sandbox.run(asked.sql, tables, self.limits)
        except TooLargeError:
            raise _too_large() from None
        finally:
            sandbox.close()


def _row(answer: bytes | None, error: str | None) -> pa.RecordBatch:
    columns = [pa.array([answer], pa.binary()), pa.array([error], pa.string())]
    return pa.RecordBatch.from_arrays(columns, ["answer", "error"])


def _too_large() -> TooLargeError:
    return TooLargeError(
        "the partial answers are too large",
        hint="ask for fewer groups, rows or columns, or for a shorter range of time",
    )
