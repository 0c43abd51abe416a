"""Spark's Python daemon, with what its workers need imported before it forks them."""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import nilometer.spark.host
import nilometer.spark.log_envelopes
import nilometer.spark.pack
import nilometer.spark.result_log
import nilometer.spark.sensor_filter  # noqa: F401

if __name__ == "__main__":
    # A worker collects garbage after every task. What is loaded here never becomes garbage, and
    # to look through it each time took longer than most tasks' own work.
    gc.collect()
    gc.freeze()
    manager()
