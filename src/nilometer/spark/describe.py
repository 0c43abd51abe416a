"""DataFrames as the streams and tables that they are declared to be."""

from __future__ import annotations

from pyspark.sql import DataFrame

from nilometer.spark.types import arrow_types
from nilometer.sql.declare import Given


def given_frame(frame: DataFrame) -> Given:
    """The columns of a DataFrame."""
    return Given(tuple(frame.columns), arrow_types(frame.schema), frame.isStreaming)
