"""A plan ready to run on Spark: its stages, and how the last of them emits results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from nilometer.engine.describe_query import describe_changes, describe_join
from nilometer.spark.changes_output import ChangesShape, change_types
from nilometer.spark.output import ResultShape, Shape, result_types
from nilometer.sql.physical.join_places import build_stage
from nilometer.sql.physical.stages import PlannedStage, StreamInput, cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan
from nilometer.sql.plan.join_plan import JoinPlan


@dataclass(frozen=True)
class SparkQuery:
    """Stages, each after those that send to it, and the form of the results."""

    stages: tuple[PlannedStage, ...]
    shape: Shape
    description: dict[str, Any]
    """The identity of this query, stored with its state."""

    @property
    def needs_now(self) -> bool:
        """Whether a stage needs the times of micro-batches."""
        return any(one.stage.needs_now for one in self.stages)


def join_query(plan: JoinPlan, schemas: Sequence[StructType]) -> SparkQuery:
    """The query of an append plan, given the schemas of its sources' columns as they are sent."""
    stage = build_stage(plan)
    inputs = tuple(StreamInput(plan, number) for number in range(len(plan.sources)))
    shape = ResultShape(plan, result_types(plan, list(schemas)))
    return SparkQuery((PlannedStage(stage, inputs),), shape, describe_join(plan, stage))


def changes_query(plan: ChangesPlan) -> SparkQuery:
    """The query of a windowed plan."""
    staged = cut_into_stages(plan)
    shape = ChangesShape(staged.columns, change_types(staged.columns), plan.appends)
    return SparkQuery(staged.stages, shape, describe_changes(staged))
