"""Runs a plan over DataFrames: as a streaming query if one of them is streaming, else a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from nilometer.kernels.expression_types import type_name
from nilometer.spark.carried import carried_schema
from nilometer.spark.inputs import Inputs, ReaderNames
from nilometer.spark.left_out import LeftOut
from nilometer.spark.query import SparkQuery, changes_query, join_query
from nilometer.spark.run_batch import run_batch
from nilometer.spark.run_stream import run_stream
from nilometer.spark.stage_inputs import union
from nilometer.sql.expressions.scalars import quote_name
from nilometer.sql.plan.changes_plan import ChangesPlan, UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan


def run_query(
    plan: JoinPlan | UnionPlan | ChangesPlan,
    inputs: Inputs,
    beats: int | None = None,
) -> DataFrame:
    """The results of a plan over its inputs.

    A windowed plan that needs the time gets this many heartbeats per second.
    """
    run = _Run(inputs)
    match plan:
        case UnionPlan():
            parts = [run.of(append_query(one, inputs)) for one in plan.plans]
            answer = union([cast_part(part, plan.kinds) for part in parts])
        case ChangesPlan():
            answer = run.of(changes_query(plan), beats)
        case JoinPlan():
            answer = run.of(append_query(plan, inputs))
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


def append_query(plan: JoinPlan, inputs: Inputs) -> SparkQuery:
    """The query of an append plan over its inputs."""
    schemas = [
        carried_schema(plan, number, inputs.typed(source.relation.name))
        for number, source in enumerate(plan.sources)
    ]
    return join_query(plan, schemas)


def inputs_of(query: SparkQuery, inputs: Inputs) -> Inputs:
    """The inputs that a query reads."""
    streams = [given for one in query.stages for given in one.streams]
    return inputs.only(one.plan.sources[one.source].relation.name for one in streams)


@dataclass(frozen=True)
class _Run:
    """A run of one or several queries over the same inputs."""

    inputs: Inputs
    names: ReaderNames = field(default_factory=ReaderNames)
    left_out: LeftOut = field(default_factory=LeftOut)

    def of(self, query: SparkQuery, beats: int | None = None) -> DataFrame:
        own = inputs_of(query, self.inputs)
        if own.live:
            return run_stream(query, own, beats, self.names)
        return run_batch(query, own.frames, self.left_out)
