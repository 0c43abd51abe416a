"""A stage as a streaming query: pack, shuffle, host, unpack."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from nilometer.model.time import format_duration
from nilometer.operators.stage import Stage
from nilometer.spark.emit import METRICS, EmitEnvelopes, EmitRows, Emitter, Unpack
from nilometer.spark.host import Host
from nilometer.spark.output import ResultShape, carried_columns
from nilometer.spark.pack import NOW, PACKED, Pack
from nilometer.spark.ship import ship_function, ship_processor
from nilometer.spark.streams import JoinedStream, union
from nilometer.spark.types import arrow_schema

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(stage: Stage, joined: Sequence[JoinedStream], shape: ResultShape) -> DataFrame:
    """The streaming DataFrame of a stage's results."""
    session = joined[0].frame.sparkSession
    require_rocksdb(session)
    packed = [pack(stage, i, stream) for i, stream in enumerate(joined)]
    live = [p for p, stream in zip(packed, joined, strict=True) if stream.frame.isStreaming]
    ended = [p for p, stream in zip(packed, joined, strict=True) if not stream.frame.isStreaming]
    emitter: Emitter = EmitRows(tuple(arrow_schema(shape.types).types)) if shape.is_flat else EmitEnvelopes()
    fields = shape.schema.fields if shape.is_flat else [StructField("body", BinaryType())]
    host = Host(stage, emitter, describe(stage, joined), uuid4().hex)
    hosted = union(live).groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=ship_processor(host),
        outputStructType=StructType([StructField(METRICS, StringType()), *fields]),
        outputMode="append",
        timeMode="none",
        initialState=union(ended).groupBy("bucket") if ended else None,
    )
    observed = hosted.observe(f"nilometer-{host.operator[:8]}", F.expr(f"collect_list({METRICS}) AS buckets"))
    results = observed.where(f"{METRICS} IS NULL")
    if not shape.is_flat:
        results = results.mapInArrow(ship_function(Unpack()), shape.schema)
    return shape.finish(results)


def pack(stage: Stage, number: int, stream: JoinedStream) -> DataFrame:
    """The envelopes of one stream."""
    columns = carried_columns(stream)
    if any(clock.idle is not None for clock in stage.clocks):
        columns.append(f"current_timestamp() AS {NOW}")
    return stream.frame.selectExpr(*columns).mapInArrow(ship_function(Pack(stage, number)), PACKED)


def describe(stage: Stage, joined: Sequence[JoinedStream]) -> dict[str, Any]:
    """What makes this query this one; kept with its state."""
    return {
        "streams": list(stage.names),
        "columns": [
            [f"{n} {t.simpleString()}" for n, t in zip(s.columns, s.types, strict=True)]
            for s in joined
        ],
        "time columns": [None if s.time is None else s.columns[s.time] for s in joined],
        "keys": [[s.columns[k] for k in s.keys] for s in joined],
        "windows": [[format_duration(b) for b in row] for row in stage.operator.network.closed],
        "lateness": [format_duration(clock.lateness) for clock in stage.clocks],
        "idle times": [None if c.idle is None else format_duration(c.idle) for c in stage.clocks],
    }


def require_rocksdb(session: SparkSession) -> None:
    """Python state needs Spark's RocksDB store: set it where it is missing, and say so."""
    found = session.conf.get(_PROVIDER, None)
    if found != _ROCKSDB:
        session.conf.set(_PROVIDER, _ROCKSDB)
        warnings.warn(
            f"set {_PROVIDER} to {_ROCKSDB.rpartition('.')[2]} in this Spark session: "
            "Spark keeps the state of Python operators nowhere else",
            stacklevel=4,
        )
