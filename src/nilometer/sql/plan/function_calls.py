"""Checks of the functions that statements call: registered, safe, or unknown."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from sqlglot import exp

from nilometer.errors import SqlError, UnknownNameError
from nilometer.model.names import count, nearest
from nilometer.sql.catalog import UserFunction
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.expressions.spark_text import safe_functions
from nilometer.sql.parse.places import place_of


def check_calls(scalar: Scalar, functions: Mapping[str, UserFunction]) -> None:
    """Refuse functions that are neither registered nor known to be safe, and wrong arguments."""
    for call in _calls(scalar):
        name = call.name.lower()
        function = functions.get(name)
        if function is not None:
            _check_call(call, function, scalar.place.sql)
        elif name not in safe_functions():
            raise blame_call(no_function(name), scalar, functions)


def cost_of_calls(scalar: Scalar, functions: Mapping[str, UserFunction]) -> float:
    """What the Python functions in an expression cost for a row, in comparisons of two rows."""
    called = (functions.get(call.name.lower()) for call in _calls(scalar))
    return sum(function.assumed_cost for function in called if function is not None)


def no_function(name: str) -> UnknownNameError:
    """The error about a function that neither Spark nor the database has."""
    return UnknownNameError(
        f"there is no function {name}",
        hint="register it with db.create_function, or use a Spark function",
    )


def blame_call(error: SqlError, scalar: Scalar, functions: Mapping[str, UserFunction]) -> SqlError:
    """The error with its position: the call, if it is about a function, else the expression."""
    place, hint = scalar.place, error.hint
    for call in _calls(scalar):
        if error.message == no_function(call.name.lower()).message:
            place = place_of(call, scalar.place.sql)
            known = [function.name for function in functions.values()]
            hint = nearest(call.name, known) or hint
    return type(error)(error.message, place=place, detail=error.detail, hint=hint)


def _calls(scalar: Scalar) -> Iterator[exp.Anonymous]:
    """The calls of functions that the parser does not recognize."""
    return scalar.tree.find_all(exp.Anonymous, bfs=False)


def _check_call(call: exp.Anonymous, function: UserFunction, sql: str) -> None:
    if not call.expressions:
        raise SqlError(f"{function.name} needs an argument", place=place_of(call, sql))
    try:
        signature = inspect.signature(function.function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    try:
        signature.bind(*call.expressions)
    except TypeError:
        takes = ", ".join(signature.parameters)
        raise SqlError(
            f"{function.name} got {count(len(call.expressions), 'argument')}",
            place=place_of(call, sql),
            detail=f"it takes {takes or 'none'}",
            hint=f"write {function.name}({takes})",
        ) from None
