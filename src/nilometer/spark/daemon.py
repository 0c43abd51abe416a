"""Spark's Python daemon, with what its workers need imported before it forks them."""

from __future__ import annotations

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import nilometer.spark.host
import nilometer.spark.pack  # noqa: F401

if __name__ == "__main__":
    manager()
