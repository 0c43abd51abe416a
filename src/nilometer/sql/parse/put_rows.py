"""A FROM for queries without one: `SELECT 1` reads one row, and VALUES is a query of its rows."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.sql.parse.over_calls import HIDDEN
from nilometer.sql.parse.places import place_of, put_at

NO_FROM: Final = "no FROM"
"""The name of the single row that a query without FROM reads; users cannot write it."""
_NOTHING: Final = "nothing"
_LAST: Final = ("order", "limit", "offset")


def put_rows(tree: exp.Expr, sql: str) -> exp.Expr:
    """The tree with a FROM in all queries except `SELECT *`."""
    for values in list(tree.find_all(exp.Values)):
        if not isinstance(values.parent, exp.From | exp.Join):
            query = put_at(exp.Select(expressions=[exp.Star()]), place_of(values, sql))
            if values is tree:
                tree = query
            elif isinstance(values.parent, exp.In):
                values.parent.set("query", exp.Subquery(this=query))
                values.parent.set("expressions", None)
            else:
                values.replace(query)
            for clause in _LAST:
                query.set(clause, values.args.get(clause))
                values.set(clause, None)
            query.set("from_", exp.From(this=values))
    for select in tree.find_all(exp.Select):
        if select.args.get("from_") is None and not select.is_star:
            select.set("from_", exp.From(this=put_at(one_row(), place_of(select, sql))))
    return tree


def reads_one_row(select: exp.Select) -> bool:
    """Whether a query has no FROM of its own."""
    return bool(select.args["from_"].this.alias == NO_FROM) and not select.args.get("joins")


def one_row() -> exp.Values:
    """The entry of FROM with a single row whose columns are all hidden."""
    row = exp.Values(expressions=[exp.Tuple(expressions=[exp.Literal.number(0)])])
    names = [exp.to_identifier(_NOTHING)]
    row.set("alias", exp.TableAlias(this=exp.to_identifier(NO_FROM, quoted=True), columns=names))
    row.meta[HIDDEN] = [_NOTHING]
    return row
