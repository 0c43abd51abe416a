"""A plan, ready to run on Spark: its stage, how rows come to it, and how results leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from nilometer.kernels.expression_types import type_name
from nilometer.model.time import EARLIEST, format_duration
from nilometer.operators.stage import Stage
from nilometer.spark.output import ResultShape, result_types
from nilometer.spark.pack import SELECTED
from nilometer.sql.carried_columns import guards_of
from nilometer.sql.physical import build_stage
from nilometer.sql.plan import Carried, JoinPlan
from nilometer.sql.scalars import ColumnRef, Scalar, spell_own
from nilometer.sql.types import Types


@dataclass(frozen=True)
class JoinQuery:
    """A stage, the plan that it came from, and what its results look like."""

    plan: JoinPlan
    stage: Stage
    shape: ResultShape

    @cached_property
    def needs_clock(self) -> bool:
        return any(clock.idle is not None for clock in self.stage.clocks)

    def carried_rows(self, number: int, frame: DataFrame, *more: str) -> DataFrame:
        """The columns of a source as they travel, what is selected, and more columns.

        A frame whose columns travel as they are, under names that need no quotes, is left
        alone: renaming them would cost Spark a copy of every row.
        """
        more = (*self._selection(number), *more)
        if not more and is_unchanged(self.plan, number, frame.columns):
            return frame
        columns = carried_sql(self.plan, number)
        return frame.selectExpr(*(f"{sql} AS c{i}" for i, sql in enumerate(columns)), *more)

    def selection(self, number: int) -> str | None:
        """The condition that rows of a source must pass before anything else."""
        below = self.plan.sources[number].below
        return " AND ".join(f"({spell_own(c.tree)})" for c in below) if below else None

    def _selection(self, number: int) -> list[str]:
        selection = self.selection(number)
        return [] if selection is None else [f"CAST(({selection}) AS BOOLEAN) AS {SELECTED}"]

    def describe(self) -> dict[str, Any]:
        """What makes this query this one; it is kept with the query's state."""
        plan, clocks = self.plan, self.stage.clocks
        return {
            "streams": list(self.stage.names),
            "columns": [
                [f"{one.ref.sql} {type_name(one.kind)}" for one in source.carried]
                for source in plan.sources
            ],
            "time columns": [s.relation.time for s in plan.sources],
            "keys": [
                [[str(equal.of(s).ref) for equal in key.classes] for s in sorted(key.streams)]
                for key in plan.keys
            ],
            "windows": [[format_duration(bound) for bound in row] for row in plan.network.closed],
            "ROWS windows": [None if s.rows is None else str(s.rows) for s in plan.sources],
            "lateness": [format_duration(clock.lateness) for clock in clocks],
            "idle times": [None if c.idle is None else format_duration(c.idle) for c in clocks],
            "predicates": _texts([*(c for s in plan.sources for c in (*s.below, *s.above))])
            + _texts(plan.residuals)
            + _texts(plan.after),
        }


def make_query(plan: JoinPlan, schemas: Sequence[StructType]) -> JoinQuery:
    """The query of a plan, given the schemas of its sources' columns as they travel."""
    return JoinQuery(plan, build_stage(plan), ResultShape(plan, result_types(plan, list(schemas))))


def carried_schema(plan: JoinPlan, number: int, frame: DataFrame) -> StructType:
    """The columns of a source as they travel, by Spark's types."""
    own = {field.name: field.dataType for field in frame.schema.fields}
    source = plan.sources[number]
    types = Types(plan.catalog, plan.sources)
    if all(_is_own(one, types) and one.ref.column in own for one in source.carried):  # type: ignore[union-attr]
        names = [one.ref.column for one in source.carried]  # type: ignore[union-attr]
        return StructType([StructField(f"c{i}", own[name]) for i, name in enumerate(names)])
    return frame.selectExpr(*carried_sql(plan, number)).schema


def carried_sql(plan: JoinPlan, number: int) -> list[str]:
    """The expressions that make the columns of a source that travel."""
    types = Types(plan.catalog, plan.sources)
    return [_carried_sql(plan, number, one, types) for one in plan.sources[number].carried]


def _carried_sql(plan: JoinPlan, number: int, one: Carried, types: Types) -> str:
    source = plan.sources[number]
    if one.ref == source.time and source.relation.time is None:
        return f"timestamp_micros({EARLIEST})" if source.is_table else "current_timestamp()"
    value = one.ref.sql
    guards = guards_of(source, one)
    if guards:  # what is not selected need not be computable
        value = (
            f"CASE WHEN {' AND '.join(f'({spell_own(c.tree)})' for c in guards)} THEN {value} END"
        )
    return value if types.of_ref(one.ref) == one.kind else f"CAST({value} AS {type_name(one.kind)})"


def is_unchanged(plan: JoinPlan, number: int, columns: Sequence[str]) -> bool:
    """Whether the columns of a source that travel are just those that it has."""
    carried, types = plan.sources[number].carried, Types(plan.catalog, plan.sources)
    names = [one.ref.column if isinstance(one.ref, ColumnRef) else "" for one in carried]
    return (
        names == list(columns)
        and all(name.isidentifier() for name in names)
        and all(_is_own(one, types) for one in carried)
    )


def _is_own(one: Carried, types: Types) -> bool:
    plain = isinstance(one.ref, ColumnRef) and not one.ref.fields
    return plain and types.of_ref(one.ref) == one.kind


def _texts(conditions: Sequence[Scalar]) -> list[str]:
    return [str(condition) for condition in conditions]
