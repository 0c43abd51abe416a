"""Registers our data sources with Spark."""

from __future__ import annotations

import threading
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from nilometer.spark.supported import require_supported

_REGISTERING: Final = threading.Lock()


def register_source(session: SparkSession, source: type[DataSource]) -> None:
    """Register a source, again if it exists, under a lock: concurrent threads must not do this."""
    require_supported(session.version)
    with _REGISTERING:
        session.dataSource.register(source)
