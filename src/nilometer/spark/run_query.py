"""Runs a plan over DataFrames: as a streaming query if one of them is streaming, else a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from nilometer.kernels.expression_types import type_name
from nilometer.spark.carried import carried_schema
from nilometer.spark.left_out import LeftOut
from nilometer.spark.log_stream import LogStream, ReaderNames, StreamFrame
from nilometer.spark.query import SparkQuery, changes_query, join_query
from nilometer.spark.run_batch import run_batch
from nilometer.spark.run_stream import run_stream
from nilometer.spark.stage_inputs import union
from nilometer.sql.expressions.scalars import quote_name
from nilometer.sql.plan.changes_plan import ChangesPlan, UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan


def run_query(
    plan: JoinPlan | UnionPlan | ChangesPlan,
    frames: Mapping[str, StreamFrame],
    beats: int | None = None,
) -> DataFrame:
    """The results of a plan over frames, or logs, by the names of its relations.

    A windowed plan that needs the time gets this many heartbeats per second.
    """
    run = _Run(frames)
    match plan:
        case UnionPlan():
            parts = [run.of(append_query(one, frames)) for one in plan.plans]
            answer = union([cast_part(part, plan.kinds) for part in parts])
        case ChangesPlan():
            answer = run.of(changes_query(plan), beats)
        case JoinPlan():
            answer = run.of(append_query(plan, frames))
    return answer if answer.isStreaming else run.left_out.attach(answer)


def cast_part(part: DataFrame, kinds: Sequence[pa.DataType | None]) -> DataFrame:
    """One part of UNION ALL, cast to the types of the whole."""
    numbered = part.toDF(*(f"c{i}" for i in range(len(kinds))))
    columns = [
        f"c{i}" if kind is None else f"CAST(c{i} AS {type_name(kind)})"
        for i, kind in enumerate(kinds)
    ]
    names = [quote_name(name) for name in part.columns]
    return numbered.selectExpr(*(f"{c} AS {n}" for c, n in zip(columns, names, strict=True)))


def append_query(plan: JoinPlan, frames: Mapping[str, StreamFrame]) -> SparkQuery:
    """The query of an append plan over frames by the names of its relations."""
    schemas = [
        carried_schema(plan, number, frames[source.relation.name])
        for number, source in enumerate(plan.sources)
    ]
    return join_query(plan, schemas)


def frames_of(query: SparkQuery, frames: Mapping[str, StreamFrame]) -> dict[str, StreamFrame]:
    """The frames that a query reads."""
    used = {
        given.plan.sources[given.source].relation.name
        for one in query.stages
        for given in one.streams
    }
    return {name: frames[name] for name in sorted(used)}


@dataclass(frozen=True)
class _Run:
    """A run of one or several queries over the same frames."""

    frames: Mapping[str, StreamFrame]
    names: ReaderNames = field(default_factory=ReaderNames)
    left_out: LeftOut = field(default_factory=LeftOut)

    def of(self, query: SparkQuery, beats: int | None = None) -> DataFrame:
        own = frames_of(query, self.frames)
        if any(frame.isStreaming for frame in own.values()):
            return run_stream(query, own, beats, self.names)
        static = {name: frame for name, frame in own.items() if not isinstance(frame, LogStream)}
        return run_batch(query, static, self.left_out)
