"""Converts columns of numbers and texts to times in Spark, as `kernels.read_times` does here."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from nilometer.errors import SchemaError
from nilometer.model.names import find_column
from nilometer.model.time import EARLIEST, LATEST
from nilometer.model.time_forms import EpochTimes, EpochUnit, TimeForm
from nilometer.sql.declare import without_unit
from nilometer.sql.expressions.scalars import quote_name

_EXACT: Final = "decimal(28, 9)"
"""Holds every count since 1970, and a DOUBLE as it is written in decimal."""


def with_instants(
    name: str, frame: DataFrame, time: str | None, form: TimeForm | None = None
) -> DataFrame:
    """The rows with their times converted; those without a zone are in the session's zone.

    Numbers and texts need a form to be times; a row that does not match it fails the query.
    """
    if time is None:
        return frame
    field = frame.schema.fields[find_column(name, frame.columns, time)]
    column = frame[quote_name(field.name)]
    is_time = isinstance(field.dataType, TimestampType | TimestampNTZType | DateType)
    if is_time and form is not None:
        raise SchemaError(
            f"the time column {field.name} of stream {name} holds times already",
            detail=f"it is {field.dataType.simpleString().upper()}",
            hint="leave out their format",
        )
    if isinstance(field.dataType, TimestampNTZType | DateType):
        return frame.withColumn(field.name, column.cast("timestamp"))
    if isinstance(field.dataType, TimestampType):
        return frame
    if form is None:
        if isinstance(field.dataType, NumericType):
            raise _without_unit(name, frame, field.name, field.dataType)
        return frame
    wrong = F.concat(F.lit(f"column {field.name} of {name} holds no time ({form}): "), column)
    refused = F.when(column.isNotNull(), F.raise_error(wrong))
    return frame.withColumn(field.name, F.coalesce(instants(column, field.dataType, form), refused))


def instants(column: Column, kind: DataType, form: TimeForm) -> Column:
    """The times that a column's values represent; NULL for a value that represents none."""
    if not isinstance(form, EpochTimes):
        is_text = isinstance(kind, StringType)
        pattern = F.lit(form.pattern)
        return F.try_to_timestamp(column, pattern) if is_text else F.lit(None).cast("timestamp")
    number = column.try_cast(_EXACT)
    if form.unit is EpochUnit.NANOS:
        micros = F.floor(number / F.lit(1000))
    else:
        micros = F.round(number * F.lit(int(form.unit.micros)))
    fits = micros.between(F.lit(EARLIEST), F.lit(LATEST))
    return F.when(fits, F.timestamp_micros(micros.cast("long")))


def _without_unit(name: str, frame: DataFrame, column: str, kind: DataType) -> SchemaError:
    """The error for numbers whose unit is unknown."""
    value = None
    if not frame.isStreaming:
        chosen = frame.select(frame[quote_name(column)].alias("value"))
        value = next((row[0] for row in chosen.where("value IS NOT NULL").take(1)), None)
    return without_unit(name, column, kind.simpleString().upper(), value)
