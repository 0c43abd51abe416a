"""Logs that tests write, and queries over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.log.layout import LogLayout
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.spark.inputs import Inputs, describe_log
from nilometer.spark.log_cursor import LogRange
from nilometer.spark.relations import SparkEngine
from nilometer.spark.session import shuffle_partitions
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.plan.changes_plan import Plan
from nilometer.sql.statements import read_query
from tests.cases import SCHEMA, Row, to_batch

NOW = {"availableNow": True}


def write_log(
    location: Path, batches: Sequence[Sequence[Row]], lateness: int = 10, largest: int = -1
) -> int:
    """Append batches, each with the watermark of all rows so far; the largest time."""
    with LogWriter.open(location, LogLayout(SCHEMA, "ts")) as log:
        for rows in batches:
            largest = max([largest, *(time for time, *_ in rows if time is not None)])
            log.append(to_batch(rows), watermark=largest - lateness)
    return largest


def plan_statement(inputs: Inputs, statement: str) -> Plan:
    """The plan of a statement over logs."""
    relations = {name: describe_log(name, log.layout) for name, log in inputs.logs.items()}
    catalog = Catalog(relations, {}, SparkEngine(inputs))
    return compile_statement(read_query(statement), catalog, shuffle_partitions(inputs.session))


def start_statement(inputs: Inputs, statement: str, folder: Path, **options: Any) -> StreamingQuery:
    """Start a statement over logs; its results go to the log folder/out."""
    place = Destination(str(folder / "out"), str(folder / "checkpoint"), trigger=NOW, **options)
    return start_query(plan_statement(inputs, statement), inputs, place)


def run_statement(inputs: Inputs, statement: str, folder: Path) -> StreamingQuery:
    """The same, to the end of what is there."""
    query = start_statement(inputs, statement, folder)
    query.awaitTermination()
    return query


def open_logs(
    spark: SparkSession,
    folder: Path,
    names: Sequence[str],
    rows: int | None = None,
    reader: str | None = None,
) -> Inputs:
    """Logs in a folder as streams from their beginning."""
    return Inputs(spark, logs={name: open_log(folder / name, rows, reader) for name in names})


def open_log(location: Path, rows: int | None = None, reader: str | None = None) -> LogRange:
    """A log from its beginning."""
    layout = LogReader.open(location).layout
    return LogRange(str(location), layout, "earliest", reader=reader, max_rows=rows)


def rows_of(location: str | Path, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """All rows of a log, sorted; times as microseconds."""
    log = LogReader.open(location)
    rows: list[tuple[Any, ...]] = []
    for frame in log.read(log.start):
        values = [_plain(frame.rows.column(name)).to_pylist() for name in columns]
        rows += list(zip(*values, strict=True))
    return sorted(rows, key=repr)


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
