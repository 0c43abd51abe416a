"""DataFrames as the streams and tables that they are declared to be."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampNTZType

from nilometer.model.names import find_column
from nilometer.spark.relations import arrow_types
from nilometer.sql.declare import Given
from nilometer.sql.scalars import quote_name


def with_instants(name: str, frame: DataFrame, time: str | None) -> DataFrame:
    """The rows, whose times are instants: those without a zone are of the session's zone."""
    if time is None:
        return frame
    field = frame.schema.fields[find_column(name, frame.columns, time)]
    if not isinstance(field.dataType, TimestampNTZType):
        return frame
    return frame.withColumn(field.name, frame[quote_name(field.name)].cast("timestamp"))


def given_frame(frame: DataFrame) -> Given:
    """The columns of a DataFrame."""
    return Given(tuple(frame.columns), arrow_types(frame.schema), frame.isStreaming)
