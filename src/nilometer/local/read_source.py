"""Compiles the carried columns of a source, so that they are computed without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.type_of import type_of
from nilometer.model.expressions import (
    Argument,
    Binary,
    Case,
    Constant,
    Expression,
    Operator,
)
from nilometer.operators.source_reader import SourceReader
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.expressions.scalars import ColumnRef, Ref, tree_of
from nilometer.sql.plan.carried_columns import guards_of
from nilometer.sql.plan.join_plan import Carried, JoinPlan, Source
from nilometer.sql.plan.types import TIMESTAMP


def read_source(plan: JoinPlan, source: Source) -> SourceReader:
    """The reader of a source; an error if only Spark can compute the carried columns."""
    columns = source.relation.columns

    def argument(ref: Ref) -> Argument:
        """A column of the relation; the arrival time comes after all of them."""
        assert isinstance(ref, ColumnRef)
        if ref.column not in columns:
            return Argument(len(columns))
        return Argument(columns.index(ref.column), ref.fields)

    subset = SubsetCompiler(plan.sql, argument, plan.catalog.functions, plan.catalog.zone)
    tests = [subset.compile(condition.tree) for condition in source.below]
    selection = reduce(partial(Binary, Operator.AND), tests) if tests else None
    wanted = tuple((_compile(subset, source, one), one.kind) for one in source.carried)
    types = [pa.null() if kind is None else kind for kind in source.relation.types]
    arrays = tuple((subset.compile(one.array.tree), one.kind) for one in source.expansions)
    for expression in (*(one for one, _ in (*wanted, *arrays)), *tests):
        require_types(expression, [*types, TIMESTAMP])
    return SourceReader(source.relation.name, source.is_table, wanted, selection, arrays)


def require_types(expression: Expression, types: Sequence[pa.DataType]) -> None:
    """Raise NotInSubsetError where we support an expression, but not for values of these types."""
    try:
        type_of(expression, types)
    except PredicateError as error:
        raise NotInSubsetError(error.message, detail=error.detail, hint=error.hint) from None


def _compile(subset: SubsetCompiler, source: Source, one: Carried) -> Expression:
    """A carried column; it need not be computable for rows that are not selected."""
    value = subset.compile(tree_of(one.ref))
    for guard in reversed(guards_of(source, one)):
        value = Case(((subset.compile(guard.tree), value),), Constant(None))
    return value
