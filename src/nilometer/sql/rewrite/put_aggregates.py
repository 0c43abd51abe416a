"""Aggregates in Python: spread(v) becomes spread(array_agg(v)), a function of all values."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from nilometer.errors import NotYetError, SqlError
from nilometer.kernels.python_aggregate import ARGUMENT, PythonAggregate
from nilometer.model.names import count
from nilometer.sql.catalog import UserFunction
from nilometer.sql.parse.placed_parser import write_as
from nilometer.sql.parse.places import place_of, put_at


def put_aggregates(tree: exp.Query, sql: str, functions: Mapping[str, UserFunction]) -> exp.Query:
    """The query with arrays of all values as arguments of Python aggregates."""
    known = {
        name: one.function
        for name, one in functions.items()
        if isinstance(one.function, PythonAggregate)
    }
    if not known:
        return tree
    tree = tree.copy()
    for call in list(tree.find_all(exp.Anonymous)):
        aggregate = known.get(call.name.lower())
        if aggregate is not None:
            _put_array(call, aggregate, sql)
    return tree


def _put_array(call: exp.Anonymous, aggregate: PythonAggregate, sql: str) -> None:
    name, place = aggregate.name, place_of(call, sql)
    around = call.parent
    if isinstance(around, exp.Window | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        raise NotYetError(
            f"{name} is not supported with OVER, WITHIN GROUP or IGNORE NULLS yet",
            place=place,
            hint="group the rows instead: GROUP BY, over a window after the stream",
        )
    operands = call.expressions
    distinct = len(operands) == 1 and isinstance(operands[0], exp.Distinct)
    values = operands[0].expressions if distinct else operands
    if not values or any(isinstance(one, exp.Star) for one in values):
        raise SqlError(f"{name} needs the values of a column", place=place, hint=f"{name}(x)")
    if not aggregate.takes(len(values)):
        raise SqlError(f"{name} does not take {count(len(values), 'argument')}", place=place)
    value = values[0] if len(values) == 1 else _struct(values)
    gathered = exp.ArrayAgg(this=exp.Distinct(expressions=[value]) if distinct else value)
    write_as(gathered, name)
    array = put_at(gathered, place)
    if isinstance(around, exp.Filter):
        array = put_at(exp.Filter(this=array, expression=around.expression), place)
        around.replace(call)
    number = [exp.Literal.number(len(values))] if len(values) > 1 else []
    call.set("expressions", [array, *number])


def _struct(values: list[exp.Expr]) -> exp.Expr:
    """Several values as one struct, which is NULL if one of them is."""
    known = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.Null())) for one in values]
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"{ARGUMENT}{number}"), expression=one)
        for number, one in enumerate(values)
    ]
    return exp.Case(
        ifs=[exp.If(this=exp.and_(*known, copy=False), true=exp.Struct(expressions=fields))]
    )
