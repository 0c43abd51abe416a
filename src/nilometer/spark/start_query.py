"""Queries that run on their own: their results go to a log, every one once."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nilometer.errors import InputError, Place
from nilometer.kernels.arrays import as_type
from nilometer.local.run_query import ResultReader
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.spark.emit import METRICS, Emitter
from nilometer.spark.log_parts import LogParts
from nilometer.spark.log_stream import LogStream, ReaderNames, StreamFrame
from nilometer.spark.query import SparkQuery, changes_query
from nilometer.spark.register_source import register_source
from nilometer.spark.result_log import EmitParts, ResultLog, ResultRows, ResultSink
from nilometer.spark.run_query import append_query, frames_of, run_query
from nilometer.spark.run_stream import ENVELOPES, run_stages
from nilometer.spark.shared_folders import require_shared
from nilometer.spark.ship import pickle_work
from nilometer.spark.stage_inputs import union
from nilometer.spark.versions import arrow_schema
from nilometer.spark.write_batches import (
    QUERY,
    EmitUnfinished,
    UnfinishedResults,
    WriteBatches,
)
from nilometer.sql.changes_plan import ChangesPlan, Plan, UnionPlan, emits_changes
from nilometer.sql.compile_scalar import NotInSubsetError
from nilometer.sql.plan import RESULT_TIME, Item, JoinPlan
from nilometer.sql.scalars import Scalar, column


@dataclass(frozen=True)
class Destination:
    """Where a query that runs on its own keeps its results and its state."""

    location: str
    """The log of the results."""
    checkpoint: str
    options: LogOptions = field(default_factory=LogOptions)
    trigger: Mapping[str, Any] | None = None
    """What `DataStreamWriter.trigger` takes; None: as fast as it can."""
    name: str | None = None
    """The streaming query's name in Spark."""
    dead_letters: str | None = None
    """The log of the rows that cannot be computed; None: they fail the query."""


def start_query(
    plan: Plan,
    frames: Mapping[str, StreamFrame],
    destination: Destination,
    beats: int | None = None,
) -> StreamingQuery:
    """Start a plan over frames, or logs, by the names of its relations.

    Rows of an append query get `_time`, the largest time of the result; changes get `_time` and
    `_diff`. So the log of the results can be read as a stream. Its watermark is the instant
    before which all of the query's buckets are done.
    """
    plan = _with_time(plan)
    _require_shared(frames, destination)
    found = _columnar(plan, frames)
    if found is not None:
        written = _write_by_host(found, plan, frames, destination, beats)
    else:
        assert not isinstance(plan, ChangesPlan)
        written = _write_by_spark(plan, frames, destination, beats)
    writer = written.option("checkpointLocation", destination.checkpoint)
    if destination.name is not None:
        writer = writer.queryName(destination.name)
    return writer.trigger(**(destination.trigger or {"processingTime": "0 seconds"})).start()


def _require_shared(frames: Mapping[str, StreamFrame], destination: Destination) -> None:
    """Refuse to start where executors would not find the logs, or would keep state elsewhere."""
    for session in {id(one.sparkSession): one.sparkSession for one in frames.values()}.values():
        logs = [one.location for one in frames.values() if isinstance(one, LogStream)]
        require_shared(session, [destination.location, destination.checkpoint, *logs])


@dataclass(frozen=True)
class _Part:
    """A query whose results need no Spark, and the rows that they become."""

    query: SparkQuery
    rows: ResultRows
    schema: pa.Schema


def _write_by_host(
    found: Sequence[_Part],
    plan: Plan,
    frames: Mapping[str, StreamFrame],
    destination: Destination,
    beats: int | None,
) -> DataStreamWriter:
    """The writer of results that the host itself makes."""
    queries = [one.query for one in found]
    log = _result_log(found[0].schema, plan, destination, queries)
    hosted = _host_all(
        queries,
        frames,
        beats,
        lambda number: EmitParts(log.parts, found[number].rows, number),
        leaves_out=destination.dead_letters is not None,
    )
    register_source(hosted[0].sparkSession, ResultSink)
    work = base64.b64encode(pickle_work(log)).decode()
    return union(hosted).writeStream.format(ResultSink.name()).option("work", work)


def _result_log(
    schema: pa.Schema, plan: Plan, destination: Destination, queries: Sequence[SparkQuery]
) -> ResultLog:
    """The log of the results; it is there from now on."""
    layout = _layout(schema, plan)
    parts = LogParts(destination.location, layout, destination.options, destination.checkpoint)
    parts.create()
    buckets = [query.stages[-1].stage.routing.buckets for query in queries]
    return ResultLog(parts, len(queries), sum(buckets), destination.dead_letters)


def _host_all(
    queries: Sequence[SparkQuery],
    frames: Mapping[str, StreamFrame],
    beats: int | None,
    emitter: Callable[[int], Emitter],
    *,
    leaves_out: bool,
) -> list[DataFrame]:
    names = ReaderNames()
    return [
        run_stages(
            query,
            frames_of(query, frames),
            beats,
            names,
            emitter=emitter(number),
            sent=ENVELOPES,
            leaves_out=leaves_out,
        )
        for number, query in enumerate(queries)
    ]


def _write_by_spark(
    plan: JoinPlan | UnionPlan,
    frames: Mapping[str, StreamFrame],
    destination: Destination,
    beats: int | None,
) -> DataStreamWriter:
    """The writer of results that Spark finishes."""
    plans = plan.plans if isinstance(plan, UnionPlan) else (plan,)
    queries = [append_query(one, frames) for one in plans]
    for query in queries:
        if not _is_streaming(query, frames):
            raise InputError(
                "a part of this UNION ALL reads no stream, so its rows come only once",
                hint="insert them where they are wanted",
            )
    schema = arrow_schema(run_query(plan, frames).schema)
    leaves_out = destination.dead_letters is not None
    hosted = _host_all(queries, frames, beats, lambda _: EmitUnfinished(), leaves_out=leaves_out)
    numbered = [
        one.selectExpr(f"{number} AS {QUERY}", METRICS, "body") for number, one in enumerate(hosted)
    ]
    log = _result_log(schema, plan, destination, queries)
    kinds = plan.kinds if isinstance(plan, UnionPlan) else (None,) * len(plan.items)
    results = [UnfinishedResults(one.shape.schema, one.shape.expressions, kinds) for one in queries]
    work = WriteBatches(log, tuple(results), destination.checkpoint)
    return union(numbered).writeStream.foreachBatch(work)


def _columnar(plan: Plan, frames: Mapping[str, StreamFrame]) -> list[_Part] | None:
    """The queries of a plan if none of them needs Spark after the host."""
    if isinstance(plan, ChangesPlan):
        query = changes_query(plan)
        columns = [(one.name, one.kind) for one in plan.root.columns]
        added = {TIME: TIMESTAMP, DIFF: pa.int64()}
        schema = pa.schema([*columns, *((name, added[name]) for name in plan.added)])
        return [_Part(query, _Typed(schema), schema)]
    plans = plan.plans if isinstance(plan, UnionPlan) else (plan,)
    try:
        readers = [ResultReader(one) for one in plans]
    except NotInSubsetError:
        return None
    if any(one.after for one in plans):
        return None
    schema = readers[0].schema
    if isinstance(plan, UnionPlan):
        kinds = [kind or field.type for kind, field in zip(plan.kinds, schema, strict=True)]
        schema = pa.schema(list(zip(schema.names, kinds, strict=True)))
    queries = [append_query(one, frames) for one in plans]
    if not all(_is_streaming(query, frames) for query in queries):
        return None
    rows = [_Selected(reader, _Typed(schema)) for reader in readers]
    return [_Part(query, one, schema) for query, one in zip(queries, rows, strict=True)]


def _is_streaming(query: SparkQuery, frames: Mapping[str, StreamFrame]) -> bool:
    return any(frame.isStreaming for frame in frames_of(query, frames).values())


@dataclass(frozen=True)
class _Typed:
    """Rows under the names and in the types of a log; columns that it has not are left out."""

    schema: pa.Schema

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        shown = batch.columns[: len(self.schema)]
        columns = [as_type(c, f.type) for c, f in zip(shown, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class _Selected:
    """The select list of results, typed."""

    reader: ResultReader
    typed: _Typed

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.typed.select(self.reader.select(batch))


def _with_time(plan: Plan) -> Plan:
    """The plan whose results have their time as a column."""
    match plan:
        case UnionPlan():
            plans = tuple(_join_with_time(one) for one in plan.plans)
            more = len(plans[0].items) - len(plan.kinds)
            return UnionPlan(plans, (*plan.kinds, *(TIMESTAMP,) * more))
        case JoinPlan():
            return _join_with_time(plan)
        case _:
            return plan


def _join_with_time(plan: JoinPlan) -> JoinPlan:
    if any(item.name.lower() == TIME for item in plan.items):
        return plan
    time = Item(TIME, Scalar(column(RESULT_TIME), Place("", 0, 0)))
    return replace(plan, items=(*plan.items, time))


def _layout(schema: pa.Schema, plan: Plan) -> LogLayout:
    _require_distinct(schema.names)
    if schema.field(TIME).type != TIMESTAMP:
        raise InputError(
            f"a column of the results is named {TIME} and is no time", hint="rename it with AS"
        )
    return LogLayout(schema, TIME, changes=emits_changes(plan))


def _require_distinct(names: Sequence[str]) -> None:
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise InputError(
                f"two columns of the results are named {name}",
                detail="the log of a query's results is read by the names of its columns",
                hint="rename one of them with AS",
            )
