"""Expressions over the rows of a node, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from nilometer.model.expressions import Argument, Binary, Expression, Operator
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.compile_scalar import SubsetCompiler
from nilometer.sql.expressions.scalars import ColumnRef, Ref, Scalar
from nilometer.sql.plan.changes_plan import Node
from nilometer.sql.plan.function_calls import check_calls
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.plan.types import Types


@dataclass(frozen=True)
class RowExpressions:
    """Compiles expressions over the columns of one source, in their order."""

    sql: str
    catalog: Catalog
    source: Source

    @cached_property
    def types(self) -> Types:
        return Types(self.catalog, (self.source,))

    def value(self, scalar: Scalar) -> tuple[Expression, pa.DataType]:
        """An expression and its type; raises an error if it cannot be evaluated here."""
        check_calls(scalar, self.catalog.functions)
        kind = self.types.of_subset(scalar)
        return self._compile(scalar), kind

    def test(self, conditions: Sequence[Scalar]) -> Expression | None:
        """All conditions combined; None without conditions."""
        tests = []
        for condition in conditions:
            check_calls(condition, self.catalog.functions)
            self.types.require_condition(condition)
            self.types.of_subset(condition)
            tests.append(self._compile(condition))
        if not tests:
            return None
        test = tests[0]
        for other in tests[1:]:
            test = Binary(Operator.AND, test, other)
        return test

    @property
    def _subset(self) -> SubsetCompiler:
        return SubsetCompiler(self.sql, self._argument, self.catalog.functions, self.catalog.zone)

    def _compile(self, scalar: Scalar) -> Expression:
        return self._subset.compile(scalar.tree)

    def _argument(self, ref: Ref) -> Argument:
        assert isinstance(ref, ColumnRef)
        return Argument(self.source.relation.columns.index(ref.column), ref.fields)


def identity(node: Node) -> tuple[Expression, ...]:
    """The columns of a node, unchanged."""
    return tuple(Argument(i) for i in range(len(node.columns)))
