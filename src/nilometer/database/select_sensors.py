"""Selects the sensors whose static columns, in the catalog, satisfy a condition."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from nilometer.errors import SqlError
from nilometer.log.layout import SENSOR
from nilometer.sql.bind.table_rows import select_rows_text


def select_sensors(spark: SparkSession, rows: pa.Table, where: str) -> set[int]:
    """The versions of the rows that satisfy a condition; uses Spark only if it must."""
    try:
        chosen = rows.filter(pa.array(select_rows_text(where, rows)))
    except SqlError:
        return {row[0] for row in spark.createDataFrame(rows).where(where).select(SENSOR).collect()}
    return set(chosen.column(SENSOR).to_pylist())
