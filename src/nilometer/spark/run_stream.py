"""Runs stages as a streaming query: packs, shuffles and hosts each, and unpacks the last."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from nilometer.operators.stage import Stage
from nilometer.spark.emit import METRICS, EmitEnvelopes, EmitRows, Emitter, Unpack
from nilometer.spark.exchange import Exchange, is_on_one_machine
from nilometer.spark.heartbeat import beat
from nilometer.spark.host import Host
from nilometer.spark.inputs import Inputs, ReaderNames
from nilometer.spark.metrics import observe
from nilometer.spark.moved_state import MovedStage, MovedState
from nilometer.spark.pack import PACKED
from nilometer.spark.query import SparkQuery
from nilometer.spark.send_on import SendOn
from nilometer.spark.ship import ship_function, ship_processor
from nilometer.spark.stage_inputs import (
    StageEnvelopes,
    StageInputs,
    pulse_of_input,
    pulse_of_rows,
    union,
)
from nilometer.spark.types import arrow_schema

_Pulse: TypeAlias = Callable[[Stage, Exchange], DataFrame]
"""Makes a stage's empty envelopes."""
ENVELOPES: Final = StructType([StructField("body", BinaryType())])

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(
    query: SparkQuery,
    inputs: Inputs,
    beats: int | None = None,
    names: ReaderNames | None = None,
) -> DataFrame:
    """The streaming DataFrame of a query's results.

    A query that needs the time gets this many beats per second, if a number is given.
    """
    shape = query.shape
    types = tuple(arrow_schema(shape.types).types)
    emitter = EmitRows(types) if shape.is_flat else EmitEnvelopes()
    sent = shape.schema if shape.is_flat else ENVELOPES
    hosted = run_stages(query, inputs, beats, names, emitter=emitter, sent=sent)
    results = hosted.where(f"{METRICS} IS NULL")
    if not shape.is_flat:
        results = results.mapInArrow(ship_function(Unpack()), shape.schema)
    return shape.finish(results)


def run_stages(
    query: SparkQuery,
    inputs: Inputs,
    beats: int | None,
    names: ReaderNames | None,
    *,
    emitter: Emitter,
    sent: StructType,
    leaves_out: bool = False,
    part: int = 0,
    moved: MovedState | None = None,
) -> DataFrame:
    """The emitter's output for a query's results, with rows of metrics.

    Rows that cannot be computed are left out and reported to the emitter, or fail the query.
    `part`: the number of the query among those that run together. `moved`: the state with which
    it begins, which has the rows of streams that had ended.
    """
    exchanges = [open_exchange(inputs.session) for _ in query.stages]
    names = names or ReaderNames()
    coming = [
        StageInputs(planned, exchange, query.needs_now, names, leaves_out).read(inputs)
        for planned, exchange in zip(query.stages, exchanges, strict=True)
    ]
    if query.needs_now and beats is not None:
        pulse: _Pulse = partial(pulse_of_rows, beat(inputs.session, beats))
        coming = _with_pulse(coming, pulse, query, exchanges, only_silent=False)
    else:
        pulse = partial(pulse_of_input, inputs, inputs.live[0])
        coming = _with_pulse(coming, pulse, query, exchanges, only_silent=True)
    if moved is not None:
        coming = [replace(one, ended=None) for one in coming]
    names_of_stages = stage_names(part, len(query.stages))
    return _host_stages(query, exchanges, coming, emitter, sent, leaves_out, names_of_stages, moved)


def stage_names(part: int, stages: int) -> list[str]:
    """What the stages of a query are called in its state."""
    return [f"{part}.{number}" for number in range(stages)]


def _host_stages(
    query: SparkQuery,
    exchanges: Sequence[Exchange],
    coming: Sequence[StageEnvelopes],
    emitter: Emitter,
    sent: StructType,
    leaves_out: bool,
    stage_names: Sequence[str],
    moved: MovedState | None,
) -> DataFrame:
    passed_on: dict[int, list[DataFrame]] = {}
    for number, planned in enumerate(query.stages):
        to, form = emitter, sent
        if planned.to_stage is not None:
            target = query.stages[planned.to_stage].stage
            to, form = SendOn(target, planned.to_stream, exchanges[planned.to_stage]), PACKED
        hosted = host(
            planned.stage,
            query.description,
            exchanges[number],
            union([*coming[number].live, *passed_on.get(number, ())]),
            ended=coming[number].ended,
            emitter=to,
            sent=form,
            leaves_out=leaves_out,
            name=stage_names[number],
            moved=None if moved is None else moved.stages.get(stage_names[number]),
        )
        if planned.to_stage is not None:
            on = hosted.where(f"{METRICS} IS NULL").select("bucket", "body")
            passed_on.setdefault(planned.to_stage, []).append(on)
    return hosted


def _with_pulse(
    coming: Sequence[StageEnvelopes],
    pulse: _Pulse,
    query: SparkQuery,
    exchanges: Sequence[Exchange],
    *,
    only_silent: bool,
) -> list[StageEnvelopes]:
    """Send a pulse to all stages, or only to silent ones."""
    fed = {planned.to_stage for planned in query.stages}
    pulsed = []
    for number, one in enumerate(coming):
        if only_silent and (one.live or number in fed):
            pulsed.append(one)
            continue
        beats = pulse(query.stages[number].stage, exchanges[number])
        pulsed.append(replace(one, live=(*one.live, beats)))
    return pulsed


def host(
    stage: Stage,
    description: dict[str, Any],
    exchange: Exchange,
    envelopes: DataFrame,
    *,
    ended: DataFrame | None,
    emitter: Emitter,
    sent: StructType,
    leaves_out: bool = False,
    name: str = "",
    moved: MovedStage | None = None,
) -> DataFrame:
    """The emitter's output for the results, including rows of metrics."""
    require_rocksdb(envelopes.sparkSession)
    work = Host(stage, emitter, description, exchange, leaves_out, name, moved)
    hosted = envelopes.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=ship_processor(work),
        outputStructType=StructType([StructField(METRICS, StringType()), *sent.fields]),
        outputMode="append",
        timeMode="none",
        initialState=None if ended is None else ended.groupBy("bucket"),
    )
    return observe(hosted, exchange.operator)


def open_exchange(session: SparkSession) -> Exchange:
    """An exchange for the envelopes of one stage, separate from all others."""
    return Exchange(uuid4().hex, is_on_one_machine(session))


def require_rocksdb(session: SparkSession) -> None:
    """Python state needs Spark's RocksDB store: set it where it is missing, and warn."""
    provider = session.conf.get(_PROVIDER, None)
    if provider != _ROCKSDB:
        session.conf.set(_PROVIDER, _ROCKSDB)
        warnings.warn(
            f"set {_PROVIDER} to {_ROCKSDB.rpartition('.')[2]} in this Spark session: "
            "Spark cannot keep the state of Python operators in any other store",
            stacklevel=5,
        )
