"""Which sensors of a sensor table a reader wants: a condition on their static columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from nilometer.errors import InputError
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.evaluate import evaluate
from nilometer.log.layout import SENSOR, LogLayout
from nilometer.model.expressions import Expression
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.catalog import Relation
from nilometer.sql.expressions.compile_scalar import compile_over
from nilometer.sql.expressions.scalars import ColumnRef, column
from nilometer.sql.statements import read_expression

_TABLE = "sensors"


@dataclass(frozen=True)
class SensorFilter:
    """A condition, compiled over the static columns that it names."""

    columns: tuple[str, ...]
    test: Expression

    def versions(self, static: pa.Table) -> Int64s:
        """The versions of static values that satisfy the condition."""
        columns = [static.column(name).combine_chunks() for name in self.columns]
        truth = evaluate(self.test, columns, len(static)).cast(pa.bool_()).fill_null(False)
        chosen = truth.to_numpy(zero_copy_only=False)
        versions: Int64s = np.asarray(static.column(SENSOR), dtype=np.int64)[chosen]
        return versions


@lru_cache(maxsize=64)
def _read(where: str, names: tuple[str, ...], types: tuple[pa.DataType, ...]) -> SensorFilter:
    relation = Relation(_TABLE, names, types, is_table=True)
    meanings = {name: column(ColumnRef(_TABLE, name)) for name in names}
    unit = FromUnit(_TABLE, meanings, (), {_TABLE: relation})
    condition = ExpressionBinder(Scope(where, (unit,)), "where").bind(read_expression(where))
    refs = [ref for ref in condition.columns if isinstance(ref, ColumnRef)]
    test = compile_over(condition, condition.columns, {})
    return SensorFilter(tuple(ref.column for ref in refs), test)


def read_sensor_filter(where: str, layout: LogLayout) -> SensorFilter:
    """The filter for a condition in SQL; an error says what is wrong with it."""
    if layout.sensors is None:
        raise InputError(
            "only readers of a sensor table can choose sensors",
            detail=f"got where={where!r}",
            hint="filter the rows that were read",
        )
    static = layout.sensors.static
    return _read(where, tuple(static.names), tuple(static.types))
