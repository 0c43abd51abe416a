"""`nm.connect`: a database on a Spark session, or one in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from nilometer.errors import InputError
from nilometer.extras import require_extras

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from nilometer.database import Database
    from nilometer.database.query_status import QueryLimits
    from nilometer.local.embedded import EmbeddedDatabase
    from nilometer.model.time import Duration


@overload
def connect(*, execution: str = "auto") -> EmbeddedDatabase: ...
@overload
def connect(
    spark: SparkSession,
    *,
    path: str | Path | None = None,
    catalog: str | None = None,
    logs: str | None = None,
    execution: str = "auto",
    heartbeat: Duration = "1s",
    limits: QueryLimits | None = None,
    max_queries: int | None = None,
    delivery_folders: Sequence[str | Path] = (),
    in_process_bytes: int = ...,
) -> Database: ...
def connect(
    spark: SparkSession | None = None, *, execution: str = "auto", **options: Any
) -> Database | EmbeddedDatabase:
    """A Database on a Spark session; without one, a small one in this process.

    With a session, classic or Spark Connect, see `nilometer.database.connect` for all options.
    Without a session, rows are those of pyarrow tables, pandas data frames and files, and answers
    are pyarrow tables, at once: it neither imports Spark nor needs Java.

    execution  how windowed plans learn that time has passed: "ita" when a row reaches an
               operator, "tpa" by its inputs' clocks, "nta" by negative rows; "auto" chooses.

    >>> import pyarrow as pa
    >>> db = connect()
    >>> db.create_table("T", pa.table({"k": [2, 1]}))
    >>> db.sql("SELECT k FROM T ORDER BY k").to_pylist()
    [{'k': 1}, {'k': 2}]
    """
    if spark is None:
        if options:
            raise InputError(
                f"{next(iter(options))} is for a database on Spark",
                hint="write nm.connect(spark, …), such as with spark = nm.local_spark()",
            )
        from nilometer.local.embedded import EmbeddedDatabase  # noqa: PLC0415  takes its time

        return EmbeddedDatabase(execution)
    require_extras("nm.connect", "spark")
    from nilometer.database import connect as connect_on_spark  # noqa: PLC0415

    return connect_on_spark(spark, execution=execution, **options)
