"""How results are emitted: the columns that the host sends, and the select list over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StructField, StructType, TimestampType

from nilometer.errors import SqlError
from nilometer.spark.relations import REFUSED, analysis_kept_quiet, refusal
from nilometer.spark.types import is_flat
from nilometer.spark.uncomputable import (
    FAILED,
    ROW,
    Check,
    is_nested,
    mark_failed,
    unless_failed,
)
from nilometer.sql.expressions.pattern_guards import limit_note
from nilometer.sql.expressions.scalars import RESULT_TIME, Ref, Scalar, quote_name, spell
from nilometer.sql.plan.carried_columns import leaves_as, only_stream, output_names
from nilometer.sql.plan.function_calls import blame_call
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import Types


@dataclass(frozen=True)
class Expressions:
    """Conditions and a select list in Spark's SQL."""

    conditions: tuple[str, ...]
    items: tuple[str, ...]
    names: tuple[str, ...]
    """The names of the items."""

    texts: tuple[str, ...] = ()
    """Their texts as the user wrote them, conditions first."""
    given: tuple[str, ...] = ()
    """The columns from which they are computed, under the user's names."""
    stream: str | None = None
    """Where these come from, if that is one stream."""

    def apply(self, rows: DataFrame) -> DataFrame:
        for condition in self.conditions:
            rows = rows.where(condition)
        return rows.selectExpr(*self._named(self.items))

    def apply_checked(self, rows: DataFrame) -> DataFrame:
        """The same, plus rows that Spark cannot compute, marked by columns."""
        kinds = rows.selectExpr(*self.items).schema.fields
        checks = [Check(one, is_condition=True) for one in self.conditions]
        checks += [
            Check(item, is_nested(field.dataType))
            for item, field in zip(self.items, kinds, strict=True)
        ]
        rows = mark_failed(rows, checks, self.given)
        for condition in self.conditions:
            rows = rows.where(f"{FAILED} IS NOT NULL OR {condition}")
        items = map(unless_failed, self.items)
        return rows.selectExpr(*self._named(items), FAILED, ROW)

    def _named(self, items: Iterable[str]) -> list[str]:
        named = zip(items, self.names, strict=True)
        return [f"{item} AS {quote_name(name)}" for item, name in named]


class Shape(ABC):
    """The form of results: columns c0, c1, … as the host sends them, and when finished."""

    types: tuple[DataType, ...]
    """The types of the columns."""

    @property
    def is_flat(self) -> bool:
        return all(map(is_flat, self.types))

    @property
    def schema(self) -> StructType:
        """The result columns as the host sends them: timestamps as microseconds."""
        return StructType(
            [
                StructField(f"c{i}", LongType() if isinstance(t, TimestampType) else t)
                for i, t in enumerate(self.types)
            ]
        )

    @abstractmethod
    def finish(self, results: DataFrame) -> DataFrame:
        """The results as readers see them."""

    @property
    @abstractmethod
    def expressions(self) -> Expressions:
        """The expressions that Spark computes."""


@dataclass(frozen=True)
class ResultShape(Shape):
    """Result columns c0, c1, … as the host sends them, and how they are finished."""

    plan: JoinPlan
    types: tuple[DataType, ...]
    """Their types; c0 is the time of the result in microseconds."""

    def finish(self, results: DataFrame) -> DataFrame:
        """The select list over results, after the conditions that only Spark can evaluate."""
        with analysis_kept_quiet():
            try:
                return self.expressions.apply(results)
            except REFUSED as error:
                raise self._refused(results, error) from None

    @property
    def expressions(self) -> Expressions:
        """The expressions that Spark computes."""
        return Expressions(
            tuple(f"CAST(({self._spell(one)}) AS BOOLEAN)" for one in self.plan.after),
            tuple(self._spell(item.value) for item in self.plan.items),
            tuple(item.name for item in self.plan.items),
            tuple(
                f"{one}{limit_note(one.tree)}"
                for one in (*self.plan.after, *(item.value for item in self.plan.items))
            ),
            tuple(
                f"{self._column(ref)} AS {quote_name(name)}"
                for ref, name in zip(
                    (RESULT_TIME, *(one.ref for one in self.plan.output)),
                    (str(RESULT_TIME), *output_names(self.plan)),
                    strict=True,
                )
            ),
            only_stream(self.plan),
        )

    def _spell(self, scalar: Scalar) -> str:
        return spell(scalar.tree, self._column)

    def _column(self, ref: Ref) -> str:
        if ref == RESULT_TIME:
            return "timestamp_micros(c0)"
        chosen = leaves_as(ref, self.plan, Types(self.plan.catalog, self.plan.sources))
        number = 1 + [one.ref for one in self.plan.output].index(chosen)
        is_time = isinstance(self.types[number], TimestampType)
        return f"timestamp_micros(c{number})" if is_time else f"c{number}"

    def _refused(self, results: DataFrame, whole: Exception) -> SqlError:
        """Which expression Spark refuses, and why; if it accepts each alone, the first is named."""
        scalars = [*self.plan.after, *(item.value for item in self.plan.items)]
        for scalar in scalars:
            try:
                _ = results.selectExpr("c0", self._spell(scalar)).schema
            except REFUSED as error:
                return blame_call(refusal(error), scalar, self.plan.catalog.functions)
        return blame_call(refusal(whole), scalars[0], self.plan.catalog.functions)


def result_types(plan: JoinPlan, carried: list[StructType]) -> tuple[DataType, ...]:
    """The types of result columns c0, c1, …, given those of the columns that are sent."""
    types: list[DataType] = [LongType()]
    for one in plan.output:
        number = plan.number(one.ref.stream)
        place = plan.sources[number].carried.index(one)
        types.append(carried[number].fields[place].dataType)
    return tuple(types)
