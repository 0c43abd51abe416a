"""`where=` of a window join: what Spark selects before the join, and what the join has to test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nilometer.errors import PredicateError
from nilometer.kernels.expression_types import type_name, type_of
from nilometer.kernels.window_join import Residual
from nilometer.operators.predicates import PythonTest, SqlTest
from nilometer.spark.streams import JoinedStream
from nilometer.spark.types import arrow_schema
from nilometer.sql.predicate import ColumnRef, Condition, Scope, read_column, read_predicate


@dataclass(frozen=True)
class PythonPredicate:
    """A function of some columns that says which combinations of rows join."""

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


@dataclass(frozen=True)
class Conditions:
    """The parts of `where=`."""

    residuals: tuple[Residual, ...]
    """What the join tests, on columns of one stream or more."""
    selections: tuple[str | None, ...]
    """What Spark tests, for each stream, on its own columns."""
    texts: tuple[str, ...]
    """All conditions, to tell this query from others."""


def read_conditions(where: Where, joined: Sequence[JoinedStream]) -> Conditions:
    """The conditions that a user gave in any accepted form."""
    given = [where] if isinstance(where, str | PythonPredicate) else list(where or ())
    scope = Scope({stream.name: stream.columns for stream in joined})
    residuals: list[Residual] = []
    selections: dict[str, list[str]] = {stream.name: [] for stream in joined}
    texts = []
    for one in given:
        if isinstance(one, PythonPredicate):
            residuals.append(_python_residual(one, scope, joined))
            texts.append(f"{one.name}({', '.join(one.columns)})")
            continue
        for condition in read_predicate(one, scope):
            texts.append(condition.sql)
            if len(condition.streams) > 1:
                residuals.append(_sql_residual(condition, joined))
            else:  # a condition without columns may be tested on any stream
                owner = next(iter(condition.streams), joined[0].name)
                selections[owner].append(condition.sql)
    chosen = tuple(_conjunction(conditions) for conditions in selections.values())
    return Conditions(tuple(residuals), chosen, tuple(texts))


def _conjunction(conditions: Sequence[str]) -> str | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return " AND ".join(f"({condition})" for condition in conditions)


def _sql_residual(condition: Condition, joined: Sequence[JoinedStream]) -> Residual:
    places = tuple(_place(column, joined) for column in condition.columns)
    kinds = arrow_schema([joined[s].types[c] for s, c in places]).types
    expression = condition.compile()
    try:
        kind = type_of(expression, kinds)
    except PredicateError as error:
        raise PredicateError(
            error.message, detail=f"in: {condition.sql}", hint=error.hint
        ) from None
    if type_name(kind) not in ("BOOLEAN", "NULL"):
        raise PredicateError(
            "a predicate must be true or false",
            detail=f"{condition.sql} is of type {type_name(kind)}",
            hint="compare it with something",
        )
    return Residual(places, SqlTest(condition.sql, expression))


def _python_residual(
    given: PythonPredicate, scope: Scope, joined: Sequence[JoinedStream]
) -> Residual:
    refs = [read_column(column, scope) for column in given.columns]
    places = tuple(_place(ref, joined) for ref in refs)
    return Residual(places, PythonTest(given.name, given.function))


def _place(ref: ColumnRef, joined: Sequence[JoinedStream]) -> tuple[int, int]:
    names = [stream.name for stream in joined]
    number = names.index(ref.stream)
    return number, joined[number].columns.index(ref.column)
