"""Writes rows of any streaming DataFrame to a log, each micro-batch exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from nilometer.errors import InputError
from nilometer.kernels.admit import largest_time
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.parts import Part
from nilometer.model.time import FOREVER, parse_duration
from nilometer.spark.exchange import batch_number
from nilometer.spark.log_parts import LogParts
from nilometer.spark.state import task_property
from nilometer.spark.versions import StreamArrowWriter, arrow_schema


@dataclass(frozen=True)
class Writing:
    """The log to which rows are written, and how their times are given."""

    parts: LogParts
    lateness: int | None
    """How far out of order rows may be; None: the log gets no watermark."""


def read_writing(options: Mapping[str, str], schema: StructType) -> Writing:
    """The options of a writer.

    path       the location of the log, which is created if there is none
    time       the TIMESTAMP column that holds the rows' time; by default `_time`, if there is one
    lateness   how far rows may be out of order: the log's watermark follows the largest time
               by this much. By default the log gets no watermark.
    history    how long rows are kept that all readers have read; by default forever
    """
    stored = arrow_schema(schema)
    time = options.get("time") or (TIME if TIME in stored.names else None)
    if time is not None and (time not in stored.names or stored.field(time).type != TIMESTAMP):
        raise InputError(
            f"the time column {time} must be a TIMESTAMP of the rows",
            detail=f"they have {schema.simpleString()}",
        )
    lateness = options.get("lateness")
    if lateness is not None and time is None:
        raise InputError("rows without a time cannot be late", hint="name their time: time")
    path = options.get("path")
    if not path:
        raise InputError("a log is written to a path", hint='add .option("path", "…")')
    layout = LogLayout(stored, time, changes=DIFF in stored.names)
    history = options.get("history")
    log_options = LogOptions(history=FOREVER if history is None else parse_duration(history))
    parts = LogParts(str(path), layout, log_options, options.get("checkpointLocation"))
    return Writing(parts, None if lateness is None else parse_duration(lateness))


@dataclass
class _Written(WriterCommitMessage):
    """What one task wrote."""

    part: Part | None
    largest: int | None
    query: str


class RowsWriter(StreamArrowWriter):
    """Writes a part per task; the driver appends those of a micro-batch together."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        rows = TimedRows(self._writing.parts.layout)
        part = self._writing.parts.write(batch_number(), map(rows.see, iterator))
        return _Written(part, rows.largest, task_property("sql.streaming.queryId", ""))

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if message is not None]
        parts = [one.part for one in written if one.part is not None]
        times = [one.largest for one in written if one.largest is not None]
        lateness = self._writing.lateness
        watermark = max(times) - lateness if times and lateness is not None else None
        if written:
            self._writing.parts.append(parts, watermark, (written[0].query, batchId))

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Leave the parts: a later append deletes them."""


class TimedRows:
    """Casts rows to the types of a log, and tracks their largest time."""

    def __init__(self, layout: LogLayout) -> None:
        self._layout = layout
        self.largest: int | None = None

    def see(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        stored = self._layout.stored
        columns = [
            column if column.type == field.type else pc.cast(column, field.type)
            for column, field in zip(rows.columns, stored, strict=True)
        ]
        if self._layout.time is not None:
            largest = largest_time(columns[stored.names.index(self._layout.time)])
            if largest is not None:
                self.largest = largest if self.largest is None else max(self.largest, largest)
        return pa.RecordBatch.from_arrays(columns, schema=stored)
