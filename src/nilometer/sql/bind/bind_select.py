"""The parts of one SELECT, bound: its scope, its conditions, its list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.find_names import find_name
from nilometer.sql.parse.places import conjuncts, place_of, put_at
from nilometer.sql.plan.join_plan import Item


def scope_of(tree: exp.Select, units: Sequence[FromUnit], sql: str, is_outermost: bool) -> Scope:
    """The names that a query can use."""
    using = tuple(tuple(join.args.get("using") or ()) for join in tree.args.get("joins") or ())
    shared: dict[str, str] = {}
    for number, names in enumerate(using, start=1):
        for name in names:
            owner = next((u for u in units[:number] if find_name(name, u.columns)), None)
            if owner is not None:
                shared.setdefault(name.name.lower(), owner.name)
    return Scope(sql, tuple(units), shared, using, is_outermost)


def conditions_of(tree: exp.Select, scope: Scope) -> Iterator[Scalar]:
    """The conditions of a query in ON, USING and WHERE."""
    for number, join in enumerate(tree.args.get("joins") or (), start=1):
        yield from join_conditions(join, number, scope)
    where = tree.args.get("where")
    if where is not None:
        yield from where_conditions(list(conjuncts(where.this)), scope)


def where_conditions(conditions: Sequence[exp.Expr], scope: Scope) -> Iterator[Scalar]:
    """The conditions of WHERE."""
    for condition in conditions:
        yield ExpressionBinder(replace(scope, is_outermost=False), "WHERE").bind(condition)


def join_conditions(join: exp.Join, number: int, scope: Scope) -> Iterator[Scalar]:
    """The conditions in ON or USING after the entry of that number."""
    seen, later = scope.units[: number + 1], scope.units[number + 1 :]
    visible = replace(scope, units=seen, later=later, is_outermost=False)
    if join.args.get("on"):
        for condition in conjuncts(join.args["on"]):
            yield ExpressionBinder(visible, "ON").bind(condition)
    for name in join.args.get("using") or ():
        yield _using(name, visible)


def _using(name: exp.Identifier, scope: Scope) -> Scalar:
    left = replace(scope, units=scope.units[:-1]).resolve(name, [name])
    right = replace(scope, units=scope.units[-1:], merged={}).resolve(name, [name])
    return Scalar(exp.EQ(this=left, expression=right), place_of(name, scope.sql))


def items_of(tree: exp.Select, binder: ExpressionBinder) -> Iterator[Item]:
    """The columns of a query's list, with stars expanded.

    A column may name those before it, unless FROM has one of that name.
    """
    known = {name.lower() for unit in binder.scope.units for name in unit.columns}
    before: dict[str, exp.Expr] = {}
    for expression in tree.expressions:
        starred = binder.starred(expression)
        if starred is None:
            value = replace(binder, aliases=before).bind(expression.unalias())
            name = _item_name(expression, value)
            if isinstance(expression, exp.Alias) and name.lower() not in known:
                before[name.lower()] = value.tree
            yield Item(name, value)
            continue
        place = place_of(expression, binder.scope.sql)
        for one in starred:
            yield Item(one.name, Scalar(put_at(one.meaning, place), place))


def _item_name(expression: exp.Expr, value: Scalar) -> str:
    if isinstance(expression, exp.Alias):
        return expression.alias
    if isinstance(expression, exp.Column | exp.Dot) and expression.name:
        return expression.name
    place = value.place
    return " ".join(place.sql[place.start : place.end].split())
