"""`format("nilometer")`: the rows of a log for any reader, and any rows into a log."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import LongType, StructField, StructType

from nilometer.errors import InputError
from nilometer.kernels.arrays import as_type
from nilometer.local.shown_rows import ShownRows
from nilometer.log.exact_range import read_exactly, require_same_log
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.spark.log_cursor import LogCursor, LogRange, read_start
from nilometer.spark.machine import cores
from nilometer.spark.pack import WATERMARK
from nilometer.spark.register_source import register_source
from nilometer.spark.ship import pickle_work, unpack_work
from nilometer.spark.versions import Offset, StreamReader, arrow_schema, spark_schema
from nilometer.spark.write_rows import RowsWriter, read_writing

FORMAT: Final = "nilometer"
WORK: Final = "work"
"""The option with a pickled `LogRange`, instead of what users say of a log."""
Times = tuple[int | None, int | None]

_ALWAYS: Final[Times] = (None, None)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def register_log_sources(session: SparkSession) -> None:
    """Let a session read and write logs by `format("nilometer")`; repeating it is harmless."""
    register_source(session, LogSource)


def read_log(
    session: SparkSession,
    location: str,
    times: tuple[str | datetime | None, str | datetime | None] = (None, None),
) -> DataFrame:
    """All rows that a log keeps, or those in a closed range of times, as a static DataFrame."""
    register_log_sources(session)
    options = {"path": location, "startTime": times[0], "endTime": times[1]}
    texts = {name: str(value) for name, value in options.items() if value is not None}
    return session.read.format(FORMAT).options(**texts).load()


def follow_log(session: SparkSession, log: LogRange) -> DataFrame:
    """The rows of a log as a stream, including those that carry watermarks."""
    register_log_sources(session)
    work = base64.b64encode(pickle_work(log)).decode()
    return session.readStream.format(FORMAT).option(WORK, work).load()


class LogSource(DataSource):
    """A log as a source and sink of rows.

    Options of readers:
    path                the location of the log
    startingOffsets     earliest, or latest (rows that arrive from now on; the default), for streams
    maxRowsPerTrigger   the most rows of one micro-batch
    reader              a name under which the log remembers what has been read, so that it
                        keeps what has not
    failOnDataLoss      false: continue although rows were deleted before they were read
    where               for a sensor table: a condition on static columns that selects sensors
    startTime, endTime  for static reads: only rows with times in this closed range; frames without
                        any are not even read. (Spark can push a filter down to a source in Python,
                        but then applies it to all else that is read by the same `load()`.)
    tasks               how many tasks read at once; by default the number of cores

    A query that reads a log gives its `LogRange`, and gets a column of watermarks as well.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        schema = spark_schema(self._log.layout.shown)
        if WORK in self.options:
            return StructType([*schema.fields, StructField(WATERMARK, LongType())])
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        first, last = (_instant(name, self.options.get(name)) for name in ("startTime", "endTime"))
        return _BatchReader(self._rows(schema), (first, last))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader(self._rows(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> RowsWriter:  # noqa: N802
        writing = read_writing(self.options, schema)
        if not writing.parts.exists():  # tasks look for it before they write
            writing.parts.create()
        return RowsWriter(writing)

    @cached_property
    def _log(self) -> LogRange:
        options = self.options
        if (work := options.get(WORK)) is not None:
            log: LogRange = unpack_work(base64.b64decode(work))
            return log
        if not options.get("path"):
            raise InputError("a log is read from a path", hint='add .option("path", "…")')
        name, where = options.get("reader"), options.get("where")
        return LogRange(
            options["path"],
            LogReader.open(options["path"]).layout,
            read_start(options.get("startingOffsets")),
            reader=name,
            query=name,
            where=where,
            needs=where,
            may_lose=options.get("failOnDataLoss", "true").lower() == "false",
            max_rows=_number_of_rows("maxRowsPerTrigger", options.get("maxRowsPerTrigger")),
        )

    def _rows(self, schema: StructType) -> _Rows:
        tasks = int(self.options.get("tasks") or cores())
        return _Rows(self._log, schema, tasks, has_watermarks=WORK in self.options)


class _Rows:
    """Reads ranges of a log as record batches of Spark's types; runs in tasks."""

    def __init__(
        self, log_range: LogRange, schema: StructType, tasks: int, *, has_watermarks: bool
    ) -> None:
        self.log_range = log_range
        self.tasks = tasks
        self._schema = arrow_schema(schema)
        self._has_watermarks = has_watermarks

    def read(
        self, log_id: str, start: Position, end: Position, times: Times = _ALWAYS
    ) -> Iterator[pa.RecordBatch]:
        location = self.log_range.location
        log = LogReader.open(location, self.log_range.layout)
        require_same_log(log, location, log_id)
        shown = ShownRows(location, log.layout, self.log_range.where)
        watermark: int | None = None
        is_whole = times == _ALWAYS
        checked = read_exactly(log, location, start, end)
        for frame in checked if is_whole else log.read(start, end, times=times):
            watermark = frame.watermark if frame.watermark is not None else watermark
            rows = frame.rows
            if times != _ALWAYS and log.layout.time is not None:
                rows = _within(rows, rows.column(log.layout.time).cast(pa.int64()), times)
            rows = shown.show(rows)
            if len(rows):
                yield self._batch(rows.columns, len(rows))
        if self._has_watermarks and watermark is not None:
            nothing = [pa.nulls(1, field.type) for field in list(self._schema)[:-1]]
            yield self._batch([*nothing, pa.array([watermark], pa.int64())], 1)

    def _batch(self, columns: list[pa.Array], size: int) -> pa.RecordBatch:
        if len(columns) < len(self._schema):
            columns = [*columns, pa.nulls(size, pa.int64())]
        typed = [as_type(c, field.type) for c, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(typed, schema=self._schema)


class _BatchReader(DataSourceReader):
    """Reads all rows that a log keeps; frames outside of a range of times are skipped."""

    def __init__(self, rows: _Rows, times: Times) -> None:
        self._rows = rows
        self._times = times

    def partitions(self) -> list[InputPartition]:
        log = LogReader.open(self._rows.log_range.location)
        ranges = log.split(log.start, log.end, self._rows.tasks) if log.start < log.end else []
        return [InputPartition((log.log_id, *one)) for one in ranges] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # the log is empty
            return iter(())
        log_id, start, end = partition.value
        return self._rows.read(log_id, start, end, self._times)


class _StreamReader(StreamReader):
    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self.max_rows = rows.log_range.max_rows
        self._cursor_or_none: LogCursor | None = None

    def begin(self) -> Offset:
        return self._cursor.initial().to_json()

    def available(self) -> Offset:
        return self._cursor.available().to_json()

    def hold(self, start: Offset) -> None:
        self._cursor.hold(Position.from_json(start))

    def advance(self, start: Offset, last: Offset, max_rows: int | None) -> Offset:
        first, end = Position.from_json(start), Position.from_json(last)
        return self._cursor.advance(first, end, max_rows).to_json()

    def split(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, last = Position.from_json(start), Position.from_json(end)
        ranges = self._cursor.split(first, last, self._rows.tasks)
        return [InputPartition((self._cursor.log_id, *one)) for one in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        log_id, start, end = partition.value
        return self._rows.read(log_id, start, end)

    def commit(self, end: Offset) -> None:
        self._cursor.commit(Position.from_json(end))

    def stop(self) -> None:
        if self._cursor_or_none is not None:
            self._cursor_or_none.stop()

    @property
    def _cursor(self) -> LogCursor:
        """The cursor, opened on first use: Spark sends readers to tasks before that."""
        if self._cursor_or_none is None:
            self._cursor_or_none = LogCursor(self._rows.log_range)
        return self._cursor_or_none


def _number_of_rows(name: str, text: str | None) -> int | None:
    if text is not None and (not text.isdecimal() or int(text) < 1):
        raise InputError(f"{name} must be a number of rows", detail=f"got {text!r}")
    return None if text is None else int(text)


def _instant(name: str, text: str | None) -> int | None:
    """An option's time in microseconds, in UTC unless it names a zone."""
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{name} cannot be {text!r}", hint=f"write {name} as 2026-01-31 12:00:00"
        ) from None
    aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _within(rows: pa.RecordBatch, times: pa.Array, limits: Times) -> pa.RecordBatch:
    """The rows whose times lie in a closed range."""
    first, last = limits
    if first is not None:
        inside = pc.greater_equal(times, first)
        rows, times = rows.filter(inside), times.filter(inside)
    return rows if last is None else rows.filter(pc.less_equal(times, last))
