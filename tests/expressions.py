"""Conditions over streams of given columns, bound as `where=` binds them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from nilometer.model.expressions import Expression
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.catalog import Relation
from nilometer.sql.expressions.compile_scalar import compile_over
from nilometer.sql.expressions.scalars import ColumnRef, Scalar, column
from nilometer.sql.parse.places import conjuncts
from nilometer.sql.statements import read_expression

Streams = Mapping[str, Mapping[str, pa.DataType]]


def read_conditions(sql: str, streams: Streams) -> list[Scalar]:
    """The conditions of a predicate, with every column resolved."""
    scope = Scope(sql, tuple(_unit(name, columns) for name, columns in streams.items()))
    return [ExpressionBinder(scope, "where=").bind(c) for c in conjuncts(read_expression(sql))]


def compiled(condition: Scalar) -> Expression:
    """A condition over its columns, which are its arguments."""
    return compile_over(condition, condition.columns, {})


def _unit(name: str, columns: Mapping[str, pa.DataType]) -> FromUnit:
    relation = Relation(name, tuple(columns), tuple(columns.values()), "ts")
    trees = {c: column(ColumnRef(name, c)) for c in columns}
    return FromUnit(name, trees, (ColumnRef(name, "ts"),), {name: relation})
