"""The queries that are compared: ours, Spark's own, and a floor for both."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from benchmarks.loads import SCHEMA, Load
from benchmarks.watch import Run, counted, watch

_STATE: Final = "org.apache.spark.sql.execution.streaming.state"
_MEMORY: Final = "6g"
# Take snapshots even in a short run: they determine what a restart reads.
_SETTINGS: Final = {"spark.sql.streaming.stateStore.maintenanceInterval": "3s"}


def session(**config: str) -> SparkSession:
    """The tuned session that all share."""
    return nm.local_spark(name="benchmark", memory=_MEMORY, config={**_SETTINGS, **config})


def read(spark: SparkSession, load: Load) -> dict[str, DataFrame]:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return {name: reader.parquet(str(load.folder(name, "parquet"))) for name in load.names}


def to_nowhere(frame: DataFrame, checkpoint: Path) -> StreamingQuery:
    writer = counted(frame).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def nilometer(load: Load, warm_up: int, **options: Any) -> Run:
    """The join by Nilometer."""
    spark = session()

    def start(checkpoint: Path) -> StreamingQuery:
        arguments = {"on": "k", "windows": f"{load.window}s", "time": "ts", **options}
        joined = nm.window_join(read(spark, load), **arguments)
        return to_nowhere(like_the_chain(joined, load), checkpoint)

    return watch(start, warm_up)


def sql(load: Load, warm_up: int) -> Run:
    """The join by Nilometer, written in SQL."""
    spark = session()

    def start(checkpoint: Path) -> StreamingQuery:
        db = nm.connect(spark)
        for name, frame in read(spark, load).items():
            db.create_stream(name, frame, time="ts")
        return to_nowhere(like_the_chain(db.sql(statement(load)), load), checkpoint)

    return watch(start, warm_up)


def statement(load: Load) -> str:
    """The SQL equivalent of `nm.window_join` of these streams."""
    structs = ", ".join(f"struct({name}.*) AS {name}" for name in load.names)
    keys = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(load.names))
    windows = f"WINDOW = {load.window} SECONDS"
    return f"SELECT {structs} FROM {', '.join(load.names)} {windows} WHERE {keys}"


def like_the_chain(joined: DataFrame, load: Load) -> DataFrame:
    """The same columns as the chain of Spark's joins."""
    columns = [f"{name}.{c} AS {c}{name}" for name in load.names for c in ("ts", "k", "v")]
    return joined.selectExpr(*columns)


def floor(load: Load, warm_up: int) -> Run:
    """The same rows through a shuffle and a Python worker that returns them unchanged."""
    spark = session()

    def start(checkpoint: Path) -> StreamingQuery:
        rows = None
        for frame in read(spark, load).values():
            rows = frame if rows is None else rows.unionAll(frame)
        assert rows is not None
        partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        shuffled = rows.repartition(partitions, "k")
        return to_nowhere(shuffled.mapInArrow(lambda batches: batches, SCHEMA), checkpoint)

    return watch(start, warm_up)


def chain(load: Load, warm_up: int, store: str, state_format: int, key: str = "k") -> Run:
    """The join by Spark's own stream-stream joins, one after the other."""
    provider = f"{_STATE}.{store}StateStoreProvider"
    spark = session(
        **{
            "spark.sql.streaming.stateStore.providerClass": provider,
            "spark.sql.streaming.join.stateFormatVersion": str(state_format),
        }
    )
    frames = read(spark, load)
    return watch(lambda c: to_nowhere(chained(frames, load.window, key), c), warm_up)


def chained(frames: dict[str, DataFrame], window: int, key: str = "k") -> DataFrame:
    """A left-deep chain of interval joins.

    Spark refuses a second event-time column in the input of a join, so all but one of the times
    joined so far are turned into plain columns through integers, as its users do.
    """
    names = list(frames)
    joined = _named(frames[names[0]], names[0])
    for number, name in enumerate(names[1:], 1):
        within = [
            f"ts{name} BETWEEN ts{other} - INTERVAL {window} SECONDS "
            f"AND ts{other} + INTERVAL {window} SECONDS"
            for other in names[:number]
        ]
        on = f"k{names[0]} = k{name} AND {' AND '.join(within)}"
        if key != "k":
            on = f"one{names[0]} = one{name} AND {key} AND {' AND '.join(within)}"
        other = _named(frames[name], name)
        plain = f"timestamp_micros(unix_micros(ts{name})) AS ts{name}"
        others = [column for column in (*joined.columns, *other.columns) if column != f"ts{name}"]
        joined = joined.join(other, F.expr(on)).selectExpr(*others, plain)
    return joined


def _named(frame: DataFrame, name: str) -> DataFrame:
    columns = [f"{column} AS {column}{name}" for column in ("ts", "k", "v")]
    return frame.selectExpr(*columns, f"1 AS one{name}").withWatermark(f"ts{name}", "0 seconds")


def refusal_without_a_key(load: Load) -> str:
    """Spark's error for a stream-stream join without an equality."""
    frames = read(session(), load)
    a, b = (_named(frame, name) for name, frame in frames.items())
    near = f"abs(vA - vB) < 1 AND tsB BETWEEN tsA - INTERVAL {load.window} SECONDS AND tsA"
    try:
        query = a.join(b, F.expr(near)).writeStream.format("noop").start()
        query.processAllAvailable()
        query.stop()
    except (AnalysisException, StreamingQueryException) as error:
        return str(error).splitlines()[0]
    return "accepted"
