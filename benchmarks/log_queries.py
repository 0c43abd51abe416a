"""From log to log, and a log as rows: beside Spark's own joins and its file source."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.loads import SCHEMA, Load
from benchmarks.queries import session, to_nowhere
from benchmarks.watch import Run, traffic_by_nilometer, watch
from nilometer.log.reader import LogReader
from nilometer.spark.inputs import Inputs, describe_log
from nilometer.spark.log_cursor import LogRange
from nilometer.spark.log_rows import register_log_sources
from nilometer.spark.relations import SparkEngine
from nilometer.spark.session import shuffle_partitions
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.statements import read_query


def open_logs(spark: SparkSession, load: Load, rows_per_batch: int) -> Inputs:
    """The streams of a load as logs, with a number of rows of each per micro-batch."""
    logs = {}
    for name in load.names:
        location = str(load.folder(name, "log"))
        layout = LogReader.open(location).layout
        logs[name] = LogRange(location, layout, "earliest", max_rows=rows_per_batch)
    return Inputs(spark, logs=logs)


def start_statement(inputs: Inputs, statement: str, checkpoint: Path) -> StreamingQuery:
    """Start a statement over logs; its results are written to a log beside the checkpoint."""
    relations = {name: describe_log(name, log.layout) for name, log in inputs.logs.items()}
    catalog = Catalog(relations, {}, SparkEngine(inputs))
    plan = compile_statement(read_query(statement), catalog, shuffle_partitions(inputs.session))
    results = str(checkpoint.with_name("results"))
    place = Destination(results, str(checkpoint), trigger={"availableNow": True})
    return start_query(plan, inputs, place)


def log_join(load: Load, warm_up: int, batches_at_once: int) -> Run:
    """The join from logs to a log of results, with the columns of Spark's chain."""
    spark = session()
    logs = open_logs(spark, load, batches_at_once * load.rows_per_file)
    return watch(
        lambda checkpoint: start_statement(logs, _statement(load), checkpoint),
        warm_up,
        traffic_by_nilometer,
    )


def _statement(load: Load) -> str:
    columns = ", ".join(f"{n}.{c} AS {c}{n}" for n in load.names for c in ("ts", "k", "v"))
    keys = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(load.names))
    windows = f"WINDOW = {load.window} SECONDS"
    return f"SELECT {columns} FROM {', '.join(load.names)} {windows} WHERE {keys}"


def log_rows(load: Load, warm_up: int) -> Run:
    """Read the rows of a log through Nilometer's source, and discard them."""
    spark = session()
    register_log_sources(spark)
    return watch(lambda checkpoint: to_nowhere(_read_log(spark, load), checkpoint), warm_up)


def file_rows(load: Load, warm_up: int) -> Run:
    """Read the same rows through Spark's own source for Parquet files, and discard them."""
    spark = session()
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    files = str(load.folder(load.names[0], "parquet"))
    return watch(lambda checkpoint: to_nowhere(reader.parquet(files), checkpoint), warm_up)


def _read_log(spark: SparkSession, load: Load) -> DataFrame:
    reader = spark.readStream.format("nilometer").option("startingOffsets", "earliest")
    return reader.option("maxRowsPerTrigger", load.rows_per_file).load(
        str(load.folder(load.names[0], "log"))
    )
