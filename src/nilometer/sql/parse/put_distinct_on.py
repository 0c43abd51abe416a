"""DISTINCT ON (k) … ORDER BY k, v DESC: the first row of each k, by QUALIFY ROW_NUMBER()."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.parse.places import place_of, put_at

CHOOSES: Final = "chooses"
"""The metadata key of an ORDER BY that has already said which rows there are."""


def put_distinct_on(tree: exp.Expr, sql: str) -> exp.Expr:
    """The tree without DISTINCT ON."""
    for select in list(tree.find_all(exp.Select)):
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            _put(select, distinct, sql)
    return tree


def _put(select: exp.Select, distinct: exp.Distinct, sql: str) -> None:
    place = place_of(distinct, sql)
    among, order = distinct.args["on"], select.args.get("order")
    keys = among.expressions if isinstance(among, exp.Tuple) else [among.unnest()]
    terms: list[exp.Ordered] = [] if order is None else order.expressions
    resolved = [_resolved(term, select) for term in terms]
    chosen = [term for term in resolved if term.this not in keys]
    if order is None or not chosen:
        raise SqlError(
            "DISTINCT ON needs an ORDER BY that determines which row of each group is kept",
            place=place,
            hint="write SELECT DISTINCT ON (k) … ORDER BY k, ts DESC",
        )
    if select.args.get("group") is not None:
        raise SqlError(
            "DISTINCT ON cannot be combined with GROUP BY",
            place=place,
            hint="group in a subquery: … FROM (SELECT … GROUP BY …) ORDER BY …",
        )
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=[term.copy() for term in chosen]),
    )
    first = put_at(exp.EQ(this=number, expression=exp.Literal.number(1)), place)
    qualify = select.args.get("qualify")
    if qualify is not None:
        first = exp.and_(exp.Paren(this=qualify.this), first, copy=False)
    select.set("qualify", put_at(exp.Qualify(this=first), place))
    select.set("distinct", None)
    order.meta[CHOOSES] = True


def _resolved(term: exp.Ordered, select: exp.Select) -> exp.Ordered:
    """A term with what stands in the list where it has a number or a name of it."""
    named, items = term.this, select.expressions
    item = None
    if isinstance(named, exp.Literal) and not named.is_string and named.name.isdecimal():
        number = int(named.name)
        item = items[number - 1] if 1 <= number <= len(items) else None
    elif isinstance(named, exp.Column) and not named.table:
        item = next((one for one in items if one.alias.lower() == named.name.lower()), None)
    if item is None:
        return term
    resolved = term.copy()
    resolved.set("this", item.unalias().copy())
    return resolved
