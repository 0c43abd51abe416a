"""How a changelog is emitted: the answer's columns, `_time` and `_diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, TimestampType

from nilometer.operators.change_operator import DIFF, TIME
from nilometer.spark.output import Expressions, Shape
from nilometer.spark.versions import spark_type
from nilometer.sql.plan.changes_plan import Column


@dataclass(frozen=True)
class ChangesShape(Shape):
    """Changes as columns c0, c1, … with time and count last, and how they are finished."""

    columns: tuple[Column, ...]
    types: tuple[DataType, ...]
    appends: bool = False
    """Whether nothing is ever retracted: then `_diff` is not emitted."""

    def finish(self, results: DataFrame) -> DataFrame:
        """The changes under the names of the answer's columns."""
        return self.expressions.apply(results)

    @property
    def expressions(self) -> Expressions:
        """The expressions that Spark computes."""
        n = len(self.columns)
        items = [self._column(i) for i in range(n)]
        names = [one.name for one in self.columns]
        items.append(f"timestamp_micros(c{n})")
        names.append(TIME)
        if not self.appends:
            items.append(f"c{n + 1}")
            names.append(DIFF)
        return Expressions((), tuple(items), tuple(names))

    def _column(self, number: int) -> str:
        is_time = isinstance(self.types[number], TimestampType)
        return f"timestamp_micros(c{number})" if is_time else f"c{number}"


def change_types(columns: Sequence[Column]) -> tuple[DataType, ...]:
    """The types of the columns of changes, as the host sends them."""
    return (*(spark_type(one.kind) for one in columns), LongType(), LongType())
