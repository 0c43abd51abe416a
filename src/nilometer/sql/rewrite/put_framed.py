"""Aggregates composed of others, before OVER: COUNT_IF(a) OVER w is COUNT(…) OVER w."""

from __future__ import annotations

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.expressions.compound_aggregates import COMPOUND, TRUTHS, simplify_aggregate
from nilometer.sql.expressions.growth import copy_of
from nilometer.sql.expressions.scalars import rebuild
from nilometer.sql.parse.places import place_of, put_at, text_of


def put_framed(tree: exp.Query, sql: str) -> exp.Query:
    """The query with only simple functions before OVER."""
    if tree.find(exp.Window) is None:
        return tree
    tree = tree.copy()
    for window in list(tree.find_all(exp.Window)):
        called = window.this
        inner = called.this if isinstance(called, exp.Filter) else called
        is_named = isinstance(inner, exp.Anonymous) and inner.name.lower() in TRUTHS
        if not isinstance(inner, COMPOUND) and not is_named:
            continue
        simpler = simplify_aggregate(called, sql)
        if simpler is called:
            continue
        place = place_of(window, sql)
        value: exp.Expr = put_at(exp.Paren(this=_over(simpler, window, place)), place)
        if isinstance(window.parent, exp.Select):
            name = exp.to_identifier(text_of(window, sql), quoted=True)
            value = put_at(exp.Alias(this=value, alias=name), place)
        window.replace(value)
    return tree


def _over(tree: exp.Expr, window: exp.Window, place: Place) -> exp.Expr:
    """Every aggregate of an expression over a window."""
    if isinstance(tree, exp.AggFunc | exp.Filter):
        framed = copy_of(window, place)
        framed.set("this", tree.copy())
        return framed
    return rebuild(tree, lambda child: _over(child, window, place))
