"""Files as DataFrames, static or streaming, whose time column is a TIMESTAMP."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from nilometer.commands.options import Source
from nilometer.local.find_files import FileKind, Files, find_files, require_folder
from nilometer.model.names import find_column
from nilometer.spark.read_times import with_instants
from nilometer.sql.expressions.scalars import quote_name

_STRICT: Final = {"mode": "FAILFAST"}
_OPTIONS: Final = {
    FileKind.PARQUET: {},
    # Without enforceSchema a file whose header has another order would be read in the wrong order.
    FileKind.CSV: {"header": "true", "enforceSchema": "false", "escape": '"', **_STRICT},
    FileKind.JSON: _STRICT,
}
_STREAMED: Final = {
    "maxBytesPerTrigger": str(256 << 20),  # a long backlog must not become one micro-batch
    "maxFileAge": "3650d",  # by default a file with an old date would be skipped silently
}


def read_static(spark: SparkSession, source: Source) -> DataFrame:
    """All existing rows."""
    files = find_files(source.name, source.path)
    schema = _schema(spark, files, source)
    reader = spark.read.format(files.kind).options(**_OPTIONS[files.kind])
    if files.path.is_dir():
        reader = reader.option("pathGlobFilter", files.pattern)
    return _with_time(reader.schema(schema).load(str(files.path)), source)


def read_streaming(spark: SparkSession, source: Source) -> DataFrame:
    """Existing rows and those of files that appear; their columns are those found now."""
    require_folder(source.name, source.path)
    files = find_files(source.name, source.path)
    schema = _schema(spark, files, source)
    reader = spark.readStream.format(files.kind).options(**_OPTIONS[files.kind], **_STREAMED)
    reader = reader.option("pathGlobFilter", files.pattern)
    return _with_time(reader.schema(schema).load(str(files.path)), source)


def _schema(spark: SparkSession, files: Files, source: Source) -> StructType:
    """The columns of the files; text is read as text if it becomes the time of a stream."""
    reader = spark.read.format(files.kind).options(**_OPTIONS[files.kind])
    if files.kind is FileKind.CSV:
        reader = reader.option("inferSchema", "true")
    if files.path.is_dir():
        reader = reader.option("pathGlobFilter", files.pattern)
    schema = reader.load(str(files.path)).schema
    if source.time is None or files.kind is FileKind.PARQUET:
        return schema
    fields = list(schema.fields)
    for column in filter(None, (source.time, source.end)):
        place = find_column(source.name, schema.names, column)
        is_time = isinstance(fields[place].dataType, TimestampType | DateType | TimestampNTZType)
        # A number that Spark has parsed may differ from what was written: 1e3, 0123.
        if is_time or (source.form is not None and files.kind is FileKind.CSV):
            fields[place] = StructField(fields[place].name, StringType())
    return StructType(fields)


def _with_time(frame: DataFrame, source: Source) -> DataFrame:
    """Convert the time columns to TIMESTAMPs; an invalid time raises an error with the value."""
    for column in filter(None, (source.time, source.end)):
        frame = _with_instants(frame, source, column)
    return frame


def _with_instants(frame: DataFrame, source: Source, time: str) -> DataFrame:
    field = frame.schema.fields[find_column(source.name, frame.columns, time)]
    if source.form is not None or not isinstance(field.dataType, StringType):
        return with_instants(source.name, frame, time, source.form)
    column = F.col(quote_name(field.name))
    wrong = F.concat(F.lit(f"column {field.name} of {source.name} holds no time: "), column)
    refused = F.when(column.isNotNull(), F.raise_error(wrong))
    return frame.withColumn(field.name, F.coalesce(column.try_cast("timestamp"), refused))
