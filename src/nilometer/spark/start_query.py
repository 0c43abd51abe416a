"""Starts queries that run in the background: their results go to a log, each exactly once."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nilometer.engine.result_rows import ResultRows, finish_results, result_layout, with_time
from nilometer.errors import InputError
from nilometer.log.options import LogOptions
from nilometer.operators.stage import Stage
from nilometer.spark.emit import METRICS, EmitEnvelopes, Emitter
from nilometer.spark.inputs import Inputs, ReaderNames
from nilometer.spark.log_parts import LogParts
from nilometer.spark.moved_state import MovedState, is_settled, read_moved, settle
from nilometer.spark.query import SparkQuery, changes_query
from nilometer.spark.register_source import register_source
from nilometer.spark.result_log import EmitParts, ResultLog, ResultSink, forget_frontiers
from nilometer.spark.run_query import append_query, inputs_of, run_query
from nilometer.spark.run_stream import ENVELOPES, run_stages, stage_names
from nilometer.spark.serve_checkpoints import serve_checkpoint
from nilometer.spark.session import partitions_of, require_ansi, require_utc
from nilometer.spark.shared_folders import require_shared
from nilometer.spark.ship import pickle_work
from nilometer.spark.stage_inputs import union
from nilometer.spark.versions import arrow_schema
from nilometer.spark.write_batches import QUERY, UnfinishedResults, WriteBatches
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan


@dataclass(frozen=True)
class Destination:
    """Where a background query stores its results and its state."""

    location: str
    """The log of the results."""
    checkpoint: str
    options: LogOptions = field(default_factory=LogOptions)
    trigger: Mapping[str, Any] | None = None
    """What `DataStreamWriter.trigger` takes; None: as fast as it can."""
    name: str | None = None
    """The streaming query's name in Spark."""
    dead_letters: str | None = None
    """The log of dead letters; None: a row that cannot be computed fails the query."""
    moved: str | None = None
    """The copy of its state with which it went on in another number of buckets, if it did."""


def start_query(
    plan: Plan,
    inputs: Inputs,
    destination: Destination,
    beats: int | None = None,
) -> StreamingQuery:
    """Start a plan over its inputs.

    Rows of an append query get `_time`, the largest time of the result; changes get `_time` and
    `_diff`. So the log of the results can be read as a stream. Its watermark is the time
    before which all of the query's buckets are done.
    """
    plan = with_time(plan)
    address = serve_checkpoint(inputs.session, Path(destination.checkpoint))
    _require_usable(inputs, destination, address)
    moved = _settled(destination, address)
    parts = _columnar(plan, inputs)
    if parts is not None:
        written = _write_by_host(parts, plan, inputs, destination, beats, moved, address)
    else:
        assert not isinstance(plan, ChangesPlan)
        written = _write_by_spark(plan, inputs, destination, beats, moved, address)
    Path(destination.checkpoint).mkdir(parents=True, exist_ok=True)
    writer = written.option("checkpointLocation", address or destination.checkpoint)
    if destination.name is not None:
        writer = writer.queryName(destination.name)
    writer = writer.trigger(**(destination.trigger or {"processingTime": "0 seconds"}))
    with partitions_of(inputs.session, plan.buckets):
        return writer.start()


def _settled(destination: Destination, address: str | None) -> MovedState | None:
    """The state with which a query goes on, if it was moved to another number of buckets."""
    if destination.moved is None:
        return None
    checkpoint = Path(destination.checkpoint)
    moved = read_moved(checkpoint, destination.moved, address)
    if not is_settled(checkpoint, destination.moved):
        forget_frontiers(destination.location)
        settle(checkpoint, destination.moved)
    return moved


def stages_of(plan: Plan, inputs: Inputs) -> dict[str, Stage]:
    """The stages of a plan, by what they are called in its state."""
    plan = with_time(plan)
    parts = _columnar(plan, inputs)
    if parts is not None:
        queries = [one.query for one in parts]
    else:
        assert not isinstance(plan, ChangesPlan)
        plans = plan.plans if isinstance(plan, UnionPlan) else (plan,)
        queries = [append_query(one, inputs) for one in plans]
    return {
        name: planned.stage
        for part, query in enumerate(queries)
        for name, planned in zip(stage_names(part, len(query.stages)), query.stages, strict=True)
    }


def _require_usable(inputs: Inputs, destination: Destination, address: str | None) -> None:
    """Refuse to start where executors would not find the logs, or would store state elsewhere,
    and in sessions in which Spark computes something else than we do.
    """
    logs = [one.location for one in inputs.logs.values()]
    kept = [] if address is not None else [destination.checkpoint]
    sessions = [inputs.session, *(one.sparkSession for one in inputs.frames.values())]
    for session in {id(one): one for one in sessions}.values():
        require_ansi(session)
        if logs:
            require_utc(session)
        require_shared(session, [destination.location, *kept, *logs])


@dataclass(frozen=True)
class _Part:
    """A query whose results do not need Spark, and the rows that they become."""

    query: SparkQuery
    rows: ResultRows
    schema: pa.Schema


def _write_by_host(
    parts: Sequence[_Part],
    plan: Plan,
    inputs: Inputs,
    destination: Destination,
    beats: int | None,
    moved: MovedState | None,
    address: str | None,
) -> DataStreamWriter:
    """The writer of results that the host itself makes."""
    queries = [one.query for one in parts]
    log = _result_log(parts[0].schema, plan, destination, queries, moved, address)
    hosted = _host_all(
        queries,
        inputs,
        beats,
        lambda number: EmitParts(log.parts, parts[number].rows, number),
        leaves_out=destination.dead_letters is not None,
        moved=moved,
    )
    register_source(hosted[0].sparkSession, ResultSink)
    work = base64.b64encode(pickle_work(log)).decode()
    return union(hosted).writeStream.format(ResultSink.name()).option("work", work)


def _result_log(
    schema: pa.Schema,
    plan: Plan,
    destination: Destination,
    queries: Sequence[SparkQuery],
    moved: MovedState | None,
    address: str | None,
) -> ResultLog:
    """The log of the results; it exists from now on, and the checkpoint is repaired."""
    layout = result_layout(schema, plan)
    parts = LogParts(
        destination.location,
        layout,
        destination.options,
        destination.checkpoint,
        None if moved is None else moved.last,
        address,
    )
    parts.create()
    buckets = [query.stages[-1].stage.routing.buckets for query in queries]
    return ResultLog(parts, len(queries), sum(buckets), destination.dead_letters)


def _host_all(
    queries: Sequence[SparkQuery],
    inputs: Inputs,
    beats: int | None,
    emitter: Callable[[int], Emitter],
    *,
    leaves_out: bool,
    moved: MovedState | None,
) -> list[DataFrame]:
    names = ReaderNames()
    return [
        run_stages(
            query,
            inputs_of(query, inputs),
            beats,
            names,
            emitter=emitter(number),
            sent=ENVELOPES,
            leaves_out=leaves_out,
            part=number,
            moved=moved,
        )
        for number, query in enumerate(queries)
    ]


def _write_by_spark(
    plan: JoinPlan | UnionPlan,
    inputs: Inputs,
    destination: Destination,
    beats: int | None,
    moved: MovedState | None,
    address: str | None,
) -> DataStreamWriter:
    """The writer of results that Spark finishes."""
    plans = plan.plans if isinstance(plan, UnionPlan) else (plan,)
    queries = [append_query(one, inputs) for one in plans]
    for query in queries:
        if not inputs_of(query, inputs).live:
            raise InputError(
                "a part of this UNION ALL reads no stream, so its rows come only once",
                hint="insert them where they are wanted",
            )
    schema = arrow_schema(run_query(plan, inputs).schema)
    leaves_out = destination.dead_letters is not None
    hosted = _host_all(
        queries, inputs, beats, lambda _: EmitEnvelopes(), leaves_out=leaves_out, moved=moved
    )
    numbered = [
        one.selectExpr(f"{number} AS {QUERY}", METRICS, "body") for number, one in enumerate(hosted)
    ]
    log = _result_log(schema, plan, destination, queries, moved, address)
    kinds = plan.kinds if isinstance(plan, UnionPlan) else (None,) * len(plan.items)
    results = [UnfinishedResults(one.shape.schema, one.shape.expressions, kinds) for one in queries]
    work = WriteBatches(log, tuple(results), destination.checkpoint, address is not None)
    return union(numbered).writeStream.foreachBatch(work)


def _columnar(plan: Plan, inputs: Inputs) -> list[_Part] | None:
    """The queries of a plan if none of them needs Spark after the host."""
    try:
        finished = finish_results(plan)
    except NotInSubsetError:
        return None
    parts = []
    for one, rows in finished.parts:
        query = changes_query(one) if isinstance(one, ChangesPlan) else append_query(one, inputs)
        if isinstance(one, JoinPlan) and not inputs_of(query, inputs).live:
            return None
        parts.append(_Part(query, rows, finished.schema))
    return parts
