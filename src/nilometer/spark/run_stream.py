"""Stages as a streaming query: pack, shuffle and host each of them, and unpack the last."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from nilometer.operators.stage import Stage
from nilometer.spark.carried import carried_rows
from nilometer.spark.emit import METRICS, EmitEnvelopes, EmitRows, Emitter, Unpack
from nilometer.spark.exchange import Exchange, is_on_one_machine
from nilometer.spark.heartbeat import beat
from nilometer.spark.host import Host
from nilometer.spark.metrics import observe
from nilometer.spark.pack import NOW, PACKED, Pack, Pulse
from nilometer.spark.query import SparkQuery
from nilometer.spark.send_on import SendOn
from nilometer.spark.ship import ship_function, ship_processor
from nilometer.spark.types import arrow_schema
from nilometer.sql.stages import PlannedStage, StreamInput

ENVELOPES: Final = StructType([StructField("body", BinaryType())])
_ON: Final = StructType([StructField("bucket", IntegerType()), *ENVELOPES.fields])

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(
    query: SparkQuery, frames: Mapping[str, DataFrame], beats: int | None = None
) -> DataFrame:
    """The streaming DataFrame of a query's results; frames are given by names of relations.

    A query that needs to know the time gets so many beats a second, if a number is given.
    """
    live = next(frame for frame in frames.values() if frame.isStreaming)
    exchanges = [open_exchange(live.sparkSession) for _ in query.stages]
    clock = beat(live.sparkSession, beats) if beats is not None and query.needs_now else None
    sent: dict[int, list[DataFrame]] = {}
    for number, planned in enumerate(query.stages):
        packed = _Packed(planned, exchanges[number], frames, query.needs_now)
        coming = [*packed.live, *sent.get(number, ())]
        if clock is not None:
            coming.append(_pulse(clock, planned.stage, exchanges[number]))
        elif not coming:
            coming.append(_pulse(live, planned.stage, exchanges[number]))
        if planned.to_stage is None:
            break
        target = query.stages[planned.to_stage].stage
        emitter = SendOn(target, planned.to_stream, exchanges[planned.to_stage])
        hosted = host(
            planned.stage,
            query.description,
            exchanges[number],
            union(coming),
            ended=packed.ended,
            emitter=emitter,
            sent=_ON,
        )
        on = hosted.where(f"{METRICS} IS NULL").select("bucket", "body")
        sent.setdefault(planned.to_stage, []).append(on)
    shape = query.shape
    types = tuple(arrow_schema(shape.types).types)
    hosted = host(
        planned.stage,
        query.description,
        exchanges[-1],
        union(coming),
        ended=packed.ended,
        emitter=EmitRows(types) if shape.is_flat else EmitEnvelopes(),
        sent=shape.schema if shape.is_flat else ENVELOPES,
    )
    results = hosted.where(f"{METRICS} IS NULL")
    if not shape.is_flat:
        results = results.mapInArrow(ship_function(Unpack()), shape.schema)
    return shape.finish(results)


class _Packed:
    """The envelopes of a stage's streams: those that go on, and those that have ended."""

    def __init__(
        self,
        planned: PlannedStage,
        exchange: Exchange,
        frames: Mapping[str, DataFrame],
        with_clock: bool,
    ) -> None:
        self.live: list[DataFrame] = []
        ended: list[DataFrame] = []
        for stream, given in enumerate(planned.inputs):
            if not isinstance(given, StreamInput):
                continue
            frame = frames[given.plan.sources[given.source].relation.name]
            more = [f"current_timestamp() AS {NOW}"] if with_clock else []
            rows = carried_rows(given.plan, given.source, frame, *more)
            pack = Pack(planned.stage, stream, exchange)
            packed = rows.mapInArrow(ship_function(pack), PACKED)
            (self.live if frame.isStreaming else ended).append(packed)
        self.ended = union(ended) if ended else None


def host(
    stage: Stage,
    description: dict[str, Any],
    exchange: Exchange,
    envelopes: DataFrame,
    *,
    ended: DataFrame | None,
    emitter: Emitter,
    sent: StructType,
) -> DataFrame:
    """What the emitter makes of the results, and among it rows of metrics."""
    require_rocksdb(envelopes.sparkSession)
    hosted = envelopes.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=ship_processor(Host(stage, emitter, description, exchange)),
        outputStructType=StructType([StructField(METRICS, StringType()), *sent.fields]),
        outputMode="append",
        timeMode="none",
        initialState=None if ended is None else ended.groupBy("bucket"),
    )
    return observe(hosted, exchange.operator)


def _pulse(frame: DataFrame, stage: Stage, exchange: Exchange) -> DataFrame:
    return frame.mapInArrow(ship_function(Pulse(stage, exchange)), PACKED)


def open_exchange(session: SparkSession) -> Exchange:
    """A way for the envelopes of one stage, apart from those of all others."""
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
