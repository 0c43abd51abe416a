"""The Spark session of a command, which prints nothing and is stopped at the end."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pyspark.sql import SparkSession

from nilometer.spark.session import local_spark
from nilometer.spark.versions import accumulator_servers

_PARQUET_TIMES: Final = "spark.sql.parquet.outputTimestampType"


@contextmanager
def open_session() -> Iterator[SparkSession]:
    """A new session, or the running one, which is then left running."""
    running = SparkSession.getActiveSession()
    with _kept_quiet():
        spark = running or local_spark(name="nilometer sql")
        if running is None:
            for server in accumulator_servers():
                server.handle_error = _say_nothing  # type: ignore[method-assign, assignment]
        try:
            with _times_that_others_can_read(spark):
                yield spark
        finally:
            if running is None:
                _stop(spark)


@contextmanager
def _times_that_others_can_read(spark: SparkSession) -> Iterator[None]:
    """Write Parquet times as microseconds in UTC: Spark's INT96 has no zone and is obsolete."""
    before = spark.conf.get(_PARQUET_TIMES) or "INT96"
    spark.conf.set(_PARQUET_TIMES, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        with suppress(Exception):  # a session that has died reports it elsewhere
            spark.conf.set(_PARQUET_TIMES, before)


def _stop(spark: SparkSession) -> None:
    """Stop a session, whatever its state; Ctrl-C would only delay that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(Exception):
            spark.stop()
    finally:
        signal.signal(signal.SIGINT, before)


def _say_nothing(*_: object) -> None:
    """Replaces the traceback of PySpark's accumulator server when Java is gone."""


@contextmanager
def _kept_quiet() -> Iterator[None]:
    """Suppress what PySpark and Py4J would print: errors are reported in our words."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
