"""Aggregate functions in statements: which ones exist, and their arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from nilometer.errors import NotYetError, Place, SqlError
from nilometer.operators.change_specs import AggregateCall, AggregateFunction, SortKey
from nilometer.sql.expressions.compile_scalar import SAID
from nilometer.sql.expressions.compound_aggregates import (
    order_in,
    pair,
    pair_of_numbers,
    read_order,
    where_known,
    with_order,
)
from nilometer.sql.expressions.function_kinds import AGGREGATES
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of, put_at

_BY_NODE: Final[dict[type[exp.Expr], AggregateFunction]] = {
    exp.Count: AggregateFunction.COUNT,
    exp.Sum: AggregateFunction.SUM,
    exp.Avg: AggregateFunction.AVG,
    exp.Min: AggregateFunction.MIN,
    exp.Max: AggregateFunction.MAX,
    exp.Variance: AggregateFunction.VAR_SAMP,
    exp.VariancePop: AggregateFunction.VAR_POP,
    exp.Stddev: AggregateFunction.STDDEV_SAMP,
    exp.StddevSamp: AggregateFunction.STDDEV_SAMP,
    exp.StddevPop: AggregateFunction.STDDEV_POP,
    exp.Skewness: AggregateFunction.SKEWNESS,
    exp.Kurtosis: AggregateFunction.KURTOSIS,
    exp.BitwiseAndAgg: AggregateFunction.BIT_AND,
    exp.BitwiseOrAgg: AggregateFunction.BIT_OR,
    exp.BitwiseXorAgg: AggregateFunction.BIT_XOR,
    exp.Median: AggregateFunction.PERCENTILE,
    exp.Quantile: AggregateFunction.PERCENTILE,
    exp.PercentileDisc: AggregateFunction.PERCENTILE_DISC,
    exp.ApproxQuantile: AggregateFunction.PERCENTILE_APPROX,
}
_BY_NAME: Final = {
    "mean": AggregateFunction.AVG,
    "var": AggregateFunction.VAR_SAMP,
    "std": AggregateFunction.STDDEV_SAMP,
}
_PERCENTILES: Final = (
    AggregateFunction.PERCENTILE,
    AggregateFunction.PERCENTILE_DISC,
    AggregateFunction.PERCENTILE_APPROX,
)
_OF_DISTINCT: Final = (AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.AVG)
_ANYWAY: Final = (
    AggregateFunction.MIN,
    AggregateFunction.MAX,
    AggregateFunction.BIT_AND,
    AggregateFunction.BIT_OR,
)
"""Functions that give the same for distinct values."""
_COLLECT: Final = "collect the rows, and aggregate them in Spark"


@dataclass(frozen=True)
class AggregateNode:
    """A call of an aggregate function; COUNT(*) has no argument."""

    function: AggregateFunction
    argument: exp.Expr | None
    distinct: bool
    fraction: float | None
    separator: str = ""
    reverse: bool = False
    order: tuple[SortKey, ...] = ()

    def call(self, column: int | None) -> AggregateCall:
        """The call where the argument is in this column."""
        return AggregateCall(
            self.function,
            column,
            self.distinct,
            self.fraction,
            self.separator,
            self.reverse,
            order=self.order,
        )


def is_aggregate(node: exp.Expr, functions: Collection[str]) -> bool:
    """Whether a node calls an aggregate; `functions` are the users' own, in lower case."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return (name in _BY_NAME or name in AGGREGATES) and name not in functions
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls)


def aggregates_in(tree: exp.Expr, functions: Collection[str]) -> Iterator[exp.Expr]:
    """The outermost calls of aggregates in an expression, from left to right."""
    if is_aggregate(tree, functions):
        yield tree
        return
    if isinstance(tree, exp.Query | exp.Window):
        return
    for child in tree.iter_expressions():
        yield from aggregates_in(child, functions)


def no_value_of_group(name: str, place: Place) -> SqlError:
    """The error about a column without a single value per group."""
    return SqlError(
        f"{name} is neither a key of GROUP BY nor inside an aggregate",
        place=place,
        detail="a group is one row, but may have several values of it",
        hint=f"add it to GROUP BY, or wrap it: MAX({name})",
    )


def read_aggregate(node: exp.Expr, sql: str) -> AggregateNode:
    """The aggregate that a call computes; raises an error if it cannot be run."""
    if isinstance(node, exp.Filter):
        return _filtered(node, sql)
    if not isinstance(node, exp.Func):
        raise NotYetError(
            f"{written(node.this)} is not supported yet", place=place_of(node, sql), hint=_COLLECT
        )
    name = written(node)
    place = place_of(node, sql)
    aggregate = _of_all_values(node, place)
    if aggregate is not None:
        return aggregate
    function = _BY_NODE.get(type(node)) or _BY_NAME.get(name.lower())
    if function is None:
        raise NotYetError(f"the aggregate {name} is not supported yet", place=place, hint=_COLLECT)
    argument, distinct = _argument(node, name, sql)
    if argument is None and function is not AggregateFunction.COUNT:
        raise SqlError(f"{name} needs the values of a column", place=place, hint=f"write {name}(x)")
    if distinct and function not in (*_OF_DISTINCT, *_ANYWAY):
        raise NotYetError(f"{name}(DISTINCT …) is not supported yet", place=place, hint=_COLLECT)
    if argument is None:
        return AggregateNode(AggregateFunction.COUNT_ROWS, None, False, None)
    fraction = _fraction(node, sql) if function in _PERCENTILES else None
    reverse = bool(node.args.get("reverse"))
    distinct = distinct and function not in _ANYWAY
    return AggregateNode(function, argument, distinct, fraction, reverse=reverse)


def _of_all_values(node: exp.Func, place: Place) -> AggregateNode | None:
    """A call with an order of its values, or that returns all of them."""
    match node:
        case exp.ArgMin() | exp.ArgMax():
            return _of_first_value(node, place)
        case exp.ArrayAgg() | exp.GroupConcat():
            read = read_order(node.this)
            value, order = read.value, read.terms
            distinct = isinstance(value, exp.Distinct)
            if distinct:
                (value,), order = value.expressions, []
            is_text = isinstance(node, exp.GroupConcat)
            function = AggregateFunction.TEXT if is_text else AggregateFunction.LIST
            literal = node.args.get("separator")
            if literal is not None and not (isinstance(literal, exp.Literal) and literal.is_string):
                raise SqlError(
                    "the separator must be a constant",
                    place=place,
                    hint="write string_agg(x, ', ')",
                )
            separator = "" if literal is None else str(literal.name)
            chosen = where_known(value, pair(order, value, place), place)
            if distinct:  # without an order, and none of them is NULL
                down = read.is_descending
                return AggregateNode(function, chosen, True, None, separator, down)
            return AggregateNode(function, chosen, False, None, separator, read.reverse, read.keys)
        case exp.CovarPop() | exp.CovarSamp():
            is_sample = isinstance(node, exp.CovarSamp)
            function = AggregateFunction.COVAR_SAMP if is_sample else AggregateFunction.COVAR_POP
            return AggregateNode(function, pair_of_numbers(node, place), False, None)
        case exp.ArrayUniqueAgg():
            return AggregateNode(AggregateFunction.SET, node.this, False, None)
        case exp.Mode() if not node.args.get("deterministic"):
            return AggregateNode(AggregateFunction.MODE, node.this, False, None)
    return None


def _of_first_value(node: exp.ArgMin | exp.ArgMax, place: Place) -> AggregateNode:
    """min_by and max_by; or the first and the last value in an order."""
    is_min, chosen = isinstance(node, exp.ArgMin), node.expression
    keys: tuple[SortKey, ...] = ()
    if (order := order_in(chosen)) is None:
        chosen = where_known(chosen, pair([chosen], node.this, place), place)
    else:
        read = read_order(order)
        is_min, keys = is_min is not read.reverse, read.keys
        chosen = with_order(chosen, pair(read.terms, read.value, place))
    function = AggregateFunction.MIN_BY if is_min else AggregateFunction.MAX_BY
    return AggregateNode(function, chosen, False, None, order=keys)


def _argument(node: exp.Func, name: str, sql: str) -> tuple[exp.Expr | None, bool]:
    """The argument, none if it is a star, and whether DISTINCT precedes it."""
    operands = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
    operands = [one for one in operands if one is not None]
    if not isinstance(node, exp.Anonymous):
        operands += node.expressions
    distinct = len(operands) == 1 and isinstance(operands[0], exp.Distinct)
    if distinct:
        operands = operands[0].expressions
    if len(operands) != 1:
        raise SqlError(
            f"{name} takes one argument, got {len(operands)}",
            place=place_of(node, sql),
            hint=f"write {name}(x)",
        )
    return (None if isinstance(operands[0], exp.Star) else operands[0]), distinct


def _fraction(node: exp.Func, sql: str) -> float:
    literal = node.args.get("quantile")
    if isinstance(node, exp.Median):
        return 0.5
    if isinstance(literal, exp.Literal) and not literal.is_string and 0 <= float(literal.name) <= 1:
        return float(literal.name)
    raise SqlError(
        f"{written(node)} needs a fraction between 0 and 1 that is a constant",
        place=place_of(node, sql),
        hint=f"write {written(node)}(x, 0.95)",
    )


def _filtered(node: exp.Filter, sql: str) -> AggregateNode:
    """FILTER (WHERE c) as CASE WHEN c THEN x END."""
    inner = read_aggregate(node.this, sql)
    value = exp.Literal.number(1) if inner.argument is None else inner.argument
    condition = node.expression.this
    branch = exp.If(this=condition.copy(), true=value.copy())
    case = exp.Case(ifs=[put_at(branch, place_of(condition, sql))])
    case.meta[SAID] = "FILTER"
    is_rows = inner.function is AggregateFunction.COUNT_ROWS
    function = AggregateFunction.COUNT if is_rows else inner.function
    return replace(inner, function=function, argument=case)
