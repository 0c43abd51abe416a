"""`nm.connect`: opens a Database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from nilometer.database.database import Database
from nilometer.database.past_engine import IN_PROCESS_BYTES
from nilometer.database.query_status import QueryLimits
from nilometer.database.stored_parts import StoragePlace
from nilometer.model.time import Duration
from nilometer.sensors.log_options import StreamDefaults
from nilometer.spark.supported import require_supported


def connect(  # noqa: PLR0913  one argument for each option
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
    stream_defaults: StreamDefaults | None = None,
    in_process_bytes: int = IN_PROCESS_BYTES,
    buckets: int | None = None,
) -> Database:
    """Open a Database on a Spark session, classic or Spark Connect.

    path       a folder that keeps the catalog, logs and checkpoints; one process holds it at
               a time. Without one, the database is deleted when the process ends.
    catalog    the URL of a PostgreSQL database for the catalog, instead of a file in the folder.
    logs       where logs are stored instead: another folder, or a URI such as s3://bucket/x.
    execution  how windowed plans learn that time has passed: "ita" when a row reaches an
               operator, "tpa" by its inputs' clocks, "nta" by negative rows; "auto" chooses.
    heartbeat  how often answers over arrival times (or with idle streams) are updated
               when nothing arrives: at most a second.
    limits     what named queries may use unless they set their own; by default unlimited.
    max_queries  how many named queries may run at a time; None: any number.
    delivery_folders  where deliveries may write files, instead of `deliveries` in the folder.
    stream_defaults  how long, and how much, streams keep unless they set it themselves.
    in_process_bytes  how much a one-off query may read to be answered in this process; one that
               reads more is answered by Spark, where it can.
    buckets    how many parts the work of a new query is split into unless it says so itself; the
               folder remembers it. By default Spark's shuffle partitions.

    >>> with connect(spark, path="plant") as db:
    ...     db.resume()
    []
    """
    require_supported(spark.version)
    database = Database(
        spark,
        execution,
        heartbeat,
        limits,
        max_queries,
        delivery_folders,
        stream_defaults,
        in_process_bytes,
        buckets,
    )
    if path is not None or catalog is not None or logs is not None:
        database._stored.open(StoragePlace(None if path is None else Path(path), catalog, logs))
    return database
