"""Metrics of a database as a whole: its engine, its catalog, its disk, and the processes."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from pyspark.sql import SparkSession

from nilometer.database.home import Home
from nilometer.spark.engine_status import EngineStatus
from nilometer.spark.processes import JavaStatus, Processes, java_status, processes_below


@dataclass(frozen=True)
class Measures:
    """Metrics at one moment; None: unknown."""

    engine: EngineStatus = field(default_factory=EngineStatus)
    failures: int = 0
    """How many times named queries have failed since the database was opened."""
    named: Mapping[str, int] = field(default_factory=dict)
    """How many names the catalog has, by kind."""
    catalog_seconds: float = 0.0
    """How long the catalog took to answer that."""
    disk_free: int | None = None
    """Free bytes on the disk of the database."""
    disk_full_seconds: float | None = None
    """Seconds until the disk is full at the current growth of logs; None: not expected."""
    java: JavaStatus | None = None
    processes: Processes | None = None


def measure(home: Home, spark: SparkSession, engine: EngineStatus, failures: int) -> Measures:
    """Collect all metrics."""
    began = perf_counter()
    named = Counter(str(one.kind).lower() for one in home.catalog.names())
    took = perf_counter() - began
    free = None
    with suppress(OSError):
        free = shutil.disk_usage(home.folder).free
    java, below = java_status(spark), processes_below(os.getpid())
    left = home.storage.last.seconds_left
    return Measures(engine, failures, named, took, free, left, java, below)
