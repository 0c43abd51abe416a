"""Rows of a source as they travel: expressions that Spark would compute are computed here."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import as_type
from nilometer.kernels.evaluate import evaluate
from nilometer.model.expressions import (
    Argument,
    Binary,
    Case,
    Constant,
    Expression,
    Operator,
)
from nilometer.model.time import EARLIEST
from nilometer.sql.carried_columns import guards_of
from nilometer.sql.compile_scalar import Subset
from nilometer.sql.plan import Carried, JoinPlan, Source
from nilometer.sql.scalars import ColumnRef, Ref, tree_of
from nilometer.sql.types import TIMESTAMP


class SourceReader:
    """Makes of a source's rows the columns that travel, and says which rows are selected."""

    def __init__(self, plan: JoinPlan, source: Source) -> None:
        self._source = source
        self.relation = source.relation.name
        self._subset = Subset(plan.sql, self._argument, plan.catalog.functions)
        tests = [self._subset.compile(condition.tree) for condition in source.below]
        self._selection = reduce(partial(Binary, Operator.AND), tests) if tests else None
        self._columns = [(self._compile(one), one.kind) for one in source.carried]

    def read(self, rows: pa.RecordBatch, now: int | None) -> tuple[pa.RecordBatch, pa.Array | None]:
        """The columns of rows that came at the time `now`, and which of them are selected."""
        given = [*rows.columns, self._clock(len(rows), now)]
        columns = [
            as_type(evaluate(expression, given, len(rows)), kind)
            for expression, kind in self._columns
        ]
        carried = pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])
        if self._selection is None:
            return carried, None
        return carried, evaluate(self._selection, given, len(rows)).cast(pa.bool_())

    def _compile(self, one: Carried) -> Expression:
        """A column that travels; what is not selected need not be computable."""
        value = self._subset.compile(tree_of(one.ref))
        for guard in reversed(guards_of(self._source, one)):
            value = Case(((self._subset.compile(guard.tree), value),), Constant(None))
        return value

    def _argument(self, ref: Ref) -> Argument:
        """A column of the relation; the time of arrival stands behind all of them."""
        assert isinstance(ref, ColumnRef)
        columns = self._source.relation.columns
        if ref.column not in columns:
            return Argument(len(columns))
        return Argument(columns.index(ref.column), ref.fields)

    def _clock(self, size: int, now: int | None) -> pa.Array:
        instant = EARLIEST if self._source.is_table else now
        if instant is None:
            return pa.nulls(size, TIMESTAMP)
        return pa.array(np.full(size, instant), pa.int64()).cast(TIMESTAMP)
