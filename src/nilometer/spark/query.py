"""A plan, ready to run on Spark: its stages, and how results leave the last of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from nilometer.kernels.expression_types import type_name
from nilometer.model.time import format_duration
from nilometer.operators.stage import Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.spark.changes_output import ChangesShape
from nilometer.spark.host import PREDICATES
from nilometer.spark.output import Expressions, ResultShape, result_types
from nilometer.sql.changes_plan import ChangesPlan
from nilometer.sql.physical import build_stage
from nilometer.sql.plan import JoinPlan, Source
from nilometer.sql.scalars import Scalar
from nilometer.sql.stages import PlannedStage, StreamInput, cut_into_stages


class Shape(Protocol):
    """What results look like: columns c0, c1, … as the host sends them, and after."""

    @property
    def types(self) -> tuple[DataType, ...]: ...
    @property
    def is_flat(self) -> bool: ...
    @property
    def schema(self) -> StructType: ...
    @property
    def expressions(self) -> Expressions: ...
    def finish(self, results: DataFrame) -> DataFrame: ...


@dataclass(frozen=True)
class SparkQuery:
    """Stages, each after those that send to it, and what the results look like."""

    stages: tuple[PlannedStage, ...]
    shape: Shape
    description: dict[str, Any]
    """What makes this query this one; it is kept with the query's state."""

    @property
    def needs_now(self) -> bool:
        """Whether some stage must be told the times of micro-batches."""
        return any(one.stage.needs_now for one in self.stages)


def join_query(plan: JoinPlan, schemas: Sequence[StructType]) -> SparkQuery:
    """The query of an append plan, given the schemas of its sources' columns as they travel."""
    stage = build_stage(plan)
    inputs = tuple(StreamInput(plan, number) for number in range(len(plan.sources)))
    shape = ResultShape(plan, result_types(plan, list(schemas)))
    return SparkQuery((PlannedStage(stage, inputs),), shape, _describe_join(plan, stage))


def changes_query(plan: ChangesPlan) -> SparkQuery:
    """The query of a windowed plan."""
    staged = cut_into_stages(plan)
    sources = [given.plan.sources[given.source] for _, _, given in staged.streams]
    clocks = [staged.stages[n].stage.clocks[stream] for n, stream, _ in staged.streams]
    description = {
        "statement": " ".join(plan.sql.split()),
        **_describe_sources(sources, clocks),
        "executions": [str(one.stage.execution) for one in staged.stages[:1]],
        "stages": [one.stage.routing.buckets for one in staged.stages],
    }
    return SparkQuery(staged.stages, ChangesShape(staged.columns, plan.appends), description)


def _describe_join(plan: JoinPlan, stage: Stage) -> dict[str, Any]:
    return {
        "streams": list(stage.names),
        "algorithms": [] if plan.algorithm is None else [plan.algorithm.name],
        **_describe_sources(plan.sources, stage.clocks),
        "keys": [
            [[str(equal.of(s).ref) for equal in key.classes] for s in sorted(key.streams)]
            for key in plan.keys
        ],
        "windows": [[format_duration(bound) for bound in row] for row in plan.network.closed],
        "ROWS windows": [None if s.rows is None else str(s.rows) for s in plan.sources],
        PREDICATES: _texts([*(c for s in plan.sources for c in (*s.below, *s.above))])
        + _texts(plan.residuals)
        + _texts(plan.after),
    }


def _describe_sources(
    sources: Sequence[Source], clocks: Sequence[StreamClock]
) -> Mapping[str, Any]:
    return {
        "columns": [
            [f"{one.ref.sql} {type_name(one.kind)}" for one in source.carried] for source in sources
        ],
        "time columns": [source.relation.time for source in sources],
        "lateness": [format_duration(clock.lateness) for clock in clocks],
        "idle times": [None if c.idle is None else format_duration(c.idle) for c in clocks],
    }


def _texts(conditions: Sequence[Scalar]) -> list[str]:
    return [str(condition) for condition in conditions]
