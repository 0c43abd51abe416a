"""Makes data sources of ours known to Spark."""

from __future__ import annotations

import threading
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from nilometer.spark.supported import require_supported

_REGISTERING: Final = threading.Lock()


def register_source(session: SparkSession, source: type[DataSource]) -> None:
    """Register a source, once more if it is there: two threads at the same time may not."""
    require_supported(session.version)
    with _REGISTERING:
        session.dataSource.register(source)
