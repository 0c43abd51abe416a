"""Nilometer: a stream database for sensor data on Apache Spark."""

from nilometer.errors import NilometerError
from nilometer.model.windows import between, dwindow, window
from nilometer.model.windows import range_window as range
from nilometer.spark.window_join import window_join
from nilometer.version import VERSION as __version__

__all__ = ["NilometerError", "__version__", "between", "dwindow", "range", "window", "window_join"]
