"""SEMI and ANTI JOIN, as EXISTS and NOT EXISTS in WHERE."""

from __future__ import annotations

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.parse.places import place_of, put_at


def is_semi_join(node: exp.Expr) -> bool:
    """Whether a join only selects rows of its left side."""
    return isinstance(node, exp.Join) and str(node.args.get("kind") or "").upper() in _KINDS


def put_semi_joins(select: exp.Select, sql: str) -> None:
    """Put conditions into WHERE in place of a query's semi joins.

    Rows may be selected after other joins as well as before, unless these keep rows of their own.
    """
    joins: list[exp.Join] = select.args.get("joins") or []
    if any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins):
        return
    conditions = []
    for number, join in enumerate(joins):
        if is_semi_join(join):
            before = [select.args["from_"].this, *(one.this for one in joins[:number])]
            conditions.append(_condition(join, before, sql))
    if not conditions:
        return
    select.set("joins", [join for join in joins if not is_semi_join(join)])
    where = select.args.get("where")
    plain = [where.this] if where is not None else []
    select.set("where", exp.Where(this=exp.and_(*plain, *conditions, copy=False)))


def _condition(join: exp.Join, before: list[exp.Expr], sql: str) -> exp.Expr:
    entry, place = join.this, place_of(join, sql)
    conditions = [join.args["on"]] if join.args.get("on") is not None else []
    for name in join.args.get("using") or ():
        sides = [one.alias_or_name for one in (before[0], entry)]
        if len(before) > 1 or not all(sides):
            raise SqlError(
                f"column {name.name} is ambiguous",
                place=place_of(name, sql),
                hint=f"write ON A.{name.name} = B.{name.name}",
            )
        left, right = (exp.column(name.copy(), table=exp.to_identifier(side)) for side in sides)
        conditions.append(put_at(exp.EQ(this=left, expression=right), place_of(name, sql)))
    if join.args.get("method"):
        raise SqlError("a NATURAL SEMI JOIN names no columns", place=place, hint="write USING (k)")
    query = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=entry))
    if conditions:
        query.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    query.meta.update(put_at(exp.Null(), place).meta)
    exists = put_at(exp.Exists(this=query), place)
    return exp.Not(this=exists) if str(join.args["kind"]).upper() == "ANTI" else exists


_KINDS = ("SEMI", "ANTI")
