"""A stage as a streaming query: pack, shuffle, host, unpack."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from nilometer.spark.emit import METRICS, EmitEnvelopes, EmitRows, Emitter, Unpack
from nilometer.spark.exchange import Exchange, is_on_one_machine
from nilometer.spark.host import Host
from nilometer.spark.metrics import observe
from nilometer.spark.pack import NOW, PACKED, Pack
from nilometer.spark.query import JoinQuery
from nilometer.spark.ship import ship_function, ship_processor
from nilometer.spark.types import arrow_schema

ENVELOPES: Final = StructType([StructField("body", BinaryType())])

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(query: JoinQuery, frames: Sequence[DataFrame]) -> DataFrame:
    """The streaming DataFrame of a query's results."""
    exchange = open_exchange(frames[0].sparkSession)
    packed = [_pack(query, i, frame, exchange) for i, frame in enumerate(frames)]
    live = union([p for p, frame in zip(packed, frames, strict=True) if frame.isStreaming])
    ended = [p for p, frame in zip(packed, frames, strict=True) if not frame.isStreaming]
    shape = query.shape
    types = tuple(arrow_schema(shape.types).types)
    emitter = EmitRows(types) if shape.is_flat else EmitEnvelopes()
    sent = shape.schema if shape.is_flat else ENVELOPES
    hosted = host(
        query, exchange, live, ended=union(ended) if ended else None, emitter=emitter, sent=sent
    )
    results = hosted.where(f"{METRICS} IS NULL")
    if not shape.is_flat:
        results = results.mapInArrow(ship_function(Unpack()), shape.schema)
    return shape.finish(results)


def host(
    query: JoinQuery,
    exchange: Exchange,
    envelopes: DataFrame,
    *,
    ended: DataFrame | None,
    emitter: Emitter,
    sent: StructType,
) -> DataFrame:
    """What the emitter makes of the results, and among it rows of metrics."""
    require_rocksdb(envelopes.sparkSession)
    work = Host(query.stage, emitter, query.describe(), exchange)
    hosted = envelopes.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=ship_processor(work),
        outputStructType=StructType([StructField(METRICS, StringType()), *sent.fields]),
        outputMode="append",
        timeMode="none",
        initialState=None if ended is None else ended.groupBy("bucket"),
    )
    return observe(hosted, exchange.operator)


def _pack(query: JoinQuery, number: int, frame: DataFrame, exchange: Exchange) -> DataFrame:
    """The envelopes of one stream."""
    more = [f"current_timestamp() AS {NOW}"] if query.needs_clock else []
    rows = query.carried_rows(number, frame, *more)
    return rows.mapInArrow(ship_function(Pack(query.stage, number, exchange)), PACKED)


def open_exchange(session: SparkSession) -> Exchange:
    """A way for the envelopes of one query, apart from those of all others."""
    return Exchange(uuid4().hex, is_on_one_machine(session))


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of several DataFrames of one schema."""
    return reduce(lambda left, right: left.unionAll(right), frames)


def require_rocksdb(session: SparkSession) -> None:
    """Python state needs Spark's RocksDB store: set it where it is missing, and say so."""
    found = session.conf.get(_PROVIDER, None)
    if found != _ROCKSDB:
        session.conf.set(_PROVIDER, _ROCKSDB)
        warnings.warn(
            f"set {_PROVIDER} to {_ROCKSDB.rpartition('.')[2]} in this Spark session: "
            "Spark keeps the state of Python operators nowhere else",
            stacklevel=5,
        )
