"""A log as an input of queries, instead of a streaming DataFrame."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nilometer.log.layout import LogLayout
from nilometer.log.reader import LogReader
from nilometer.operators.watermarks import StreamClock
from nilometer.spark.log_cursor import LogCursor, LogRange
from nilometer.spark.log_rows import FORMAT, WORK, register_log_sources
from nilometer.spark.relations import arrow_types
from nilometer.spark.ship import pickle_work
from nilometer.spark.versions import spark_schema
from nilometer.sql.catalog import Relation

ROWS_PER_BATCH: Final = 1_000_000


@dataclass(frozen=True)
class LogStream:
    """The rows of a log as a stream; like a DataFrame, it knows its session and its schema."""

    sparkSession: SparkSession  # noqa: N815
    log: LogRange
    """Its reader is the query's; its layout has the columns that the query knows."""
    rows_per_batch: int | None = ROWS_PER_BATCH
    """The most rows of a micro-batch."""
    begins_now: bool = False
    """Whether a new query starts at the log's end as of its planning, not of Spark's first read."""

    @property
    def location(self) -> str:
        return self.log.location

    @cached_property
    def layout(self) -> LogLayout:
        return self.log.layout or LogReader.open(self.location).layout

    @cached_property
    def schema(self) -> StructType:
        """The columns as readers see them."""
        return spark_schema(self.layout.shown)

    @property
    def isStreaming(self) -> bool:  # noqa: N802
        return True

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def selectExpr(self, *expressions: str) -> DataFrame:  # noqa: N802
        """An empty DataFrame, only for Spark to determine the types of expressions."""
        return self._empty.selectExpr(*expressions)

    @cached_property
    def _empty(self) -> DataFrame:
        return self.sparkSession.createDataFrame([], self.schema)

    def range_for(
        self, reader: str | None, where: str | None = None, needs: str | None = None
    ) -> LogRange:
        """The range to read, under its own reader name, of the sensors that satisfy conditions."""
        query, layout = self.log.reader, self.layout
        found = replace(
            self.log, reader=reader, query=query, where=where, needs=needs, layout=layout
        )
        if self.begins_now:
            LogCursor(found).initial()  # the offset is kept for the reader
        return found

    def rows(
        self, reader: str | None, where: str | None = None, needs: str | None = None
    ) -> DataFrame:
        """The rows as Spark sees them, including those that carry watermarks."""
        register_log_sources(self.sparkSession)
        work = pickle_work(self.range_for(reader, where, needs))
        options = {WORK: base64.b64encode(work).decode()}
        if self.rows_per_batch is not None:
            options["maxRowsPerTrigger"] = str(self.rows_per_batch)
        return self.sparkSession.readStream.format(FORMAT).options(**options).load()


StreamFrame: TypeAlias = DataFrame | LogStream
"""What a relation of a query is read from."""


class ReaderNames:
    """Names for the readers that a query opens: in a log, each must have its own."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def next(self, log: LogStream) -> str | None:
        """The query's name, numbered from the second reader of the same log onwards."""
        name = log.log.reader
        if name is None:
            return None
        count = self._given.get(log.location, 0) + 1
        self._given[log.location] = count
        return name if count == 1 else f"{name}-{count}"


def describe_log(name: str, layout: LogLayout) -> Relation:
    """A log as a relation of statements: its watermark comes with its rows."""
    schema = spark_schema(layout.shown)
    types = arrow_types(schema)
    stated = layout.time is not None
    clock = StreamClock(stated=stated, by_arrival=not stated)
    return Relation(name, tuple(schema.names), types, layout.time, clock)


def read_log(
    session: SparkSession,
    location: str,
    where: str | None = None,
    times: tuple[str | datetime | None, str | datetime | None] = (None, None),
) -> DataFrame:
    """All rows that a log keeps, or those in a closed range of times, as a static DataFrame."""
    register_log_sources(session)
    options = {"path": location, "where": where, "startTime": times[0], "endTime": times[1]}
    given = {name: str(value) for name, value in options.items() if value is not None}
    return session.read.format(FORMAT).options(**given).load()
