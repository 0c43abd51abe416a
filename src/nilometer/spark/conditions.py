"""`where=` of a window join: conditions in SQL, or as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import PredicateError
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import Scope
from nilometer.sql.catalog import UserFunction
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.places import conjuncts
from nilometer.sql.statements import read_expression


@dataclass(frozen=True)
class PythonPredicate:
    """A function of some columns that decides which combinations of rows join."""

    function: Callable[..., Any]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


Where: TypeAlias = str | PythonPredicate | Iterable["str | PythonPredicate"] | None


def predicate(function: Callable[..., Any], *columns: str) -> PythonPredicate:
    """A join predicate in Python: it gets a pandas Series per column and returns booleans.

    >>> near = predicate(lambda a, b: (a - b).abs() < 3, "A.v", "B.v")
    """
    if not columns:
        raise PredicateError(
            "a Python predicate needs to know its columns",
            hint='name them in order: nm.predicate(function, "A.v", "B.v")',
        )
    return PythonPredicate(function, columns)


def read_conditions(where: Where, scope: Scope) -> tuple[list[Scalar], dict[str, UserFunction]]:
    """Conditions from any accepted form, and the functions that they call."""
    parts = [where] if isinstance(where, str | PythonPredicate) else list(where or ())
    conditions: list[Scalar] = []
    functions: dict[str, UserFunction] = {}
    for one in parts:
        if isinstance(one, PythonPredicate):
            name = f"{one.name}_{len(functions)}" if one.name.lower() in functions else one.name
            functions[name.lower()] = UserFunction(one.name, one.function, pa.bool_())
            arguments = [_bind(column, scope).tree for column in one.columns]
            call = exp.Anonymous(this=name, expressions=arguments)
            conditions.append(Scalar(call, _bind(one.columns[0], scope).place))
        else:
            binder = ExpressionBinder(Scope(one, scope.units), "where=")
            conditions += [binder.bind(part) for part in conjuncts(read_expression(one))]
    return conditions, functions


def _bind(text: str, scope: Scope) -> Scalar:
    return ExpressionBinder(Scope(text, scope.units), "where=").bind(read_expression(text))
