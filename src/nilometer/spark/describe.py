"""DataFrames as the streams and tables that they are declared to be."""

from __future__ import annotations

from pyspark.sql import DataFrame

from nilometer.spark.types import arrow_types
from nilometer.sql.declare import InputColumns


def given_frame(frame: DataFrame) -> InputColumns:
    """The columns of a DataFrame."""
    return InputColumns(tuple(frame.columns), arrow_types(frame.schema), frame.isStreaming)
