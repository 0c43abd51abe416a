"""How a changelog is emitted: the answer's columns, `_time` and `_diff`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StructField, StructType, TimestampType

from nilometer.operators.change_operator import DIFF, TIME
from nilometer.spark.output import Expressions
from nilometer.spark.types import is_flat
from nilometer.spark.versions import spark_type
from nilometer.sql.plan.changes_plan import Column


@dataclass(frozen=True)
class ChangesShape:
    """Changes as columns c0, c1, … with time and count last, and how they are finished."""

    columns: tuple[Column, ...]
    appends: bool = False
    """Whether nothing is ever retracted: then `_diff` is not emitted."""

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        own = (spark_type(one.kind) for one in self.columns)
        return (*own, LongType(), LongType())

    @property
    def is_flat(self) -> bool:
        return all(map(is_flat, self.types))

    @property
    def schema(self) -> StructType:
        """The columns as the host sends them: timestamps as microseconds."""
        return StructType(
            [
                StructField(f"c{i}", LongType() if isinstance(t, TimestampType) else t)
                for i, t in enumerate(self.types)
            ]
        )

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
