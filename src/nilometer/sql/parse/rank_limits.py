"""Limits on ROW_NUMBER(): QUALIFY rn <= 3, or WHERE rn <= 3 in the enclosing query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from nilometer.sql.parse.places import conjuncts


def find_limit(select: exp.Select, windows: Sequence[exp.Window]) -> int | None:
    """The largest number that a query, or the enclosing one, asks for."""
    texts = {one.sql() for one in windows}
    names = {
        item.alias.lower()
        for item in select.expressions
        if isinstance(item, exp.Alias) and item.this.sql() in texts
    }

    def is_rank(tree: exp.Expr) -> bool:
        return tree.sql() in texts or (isinstance(tree, exp.Column) and tree.name.lower() in names)

    conditions = list(_conditions(select.args.get("qualify")))
    inside = select.parent
    if isinstance(inside, exp.Subquery) and isinstance(inside.parent, exp.From):
        around = inside.parent.parent
        if isinstance(around, exp.Select) and not around.args.get("joins"):
            conditions += _conditions(around.args.get("where"))
    limits = [limit for one in conditions if (limit := _limit(one, is_rank)) is not None]
    return min(limits, default=None)


def _conditions(clause: exp.Expr | None) -> Iterator[exp.Expr]:
    return conjuncts(clause.this) if clause is not None else iter(())


def _limit(condition: exp.Expr, is_rank: Callable[[exp.Expr], bool]) -> int | None:
    """The largest number for which a condition can hold, if it has a limit."""
    if isinstance(condition, exp.Between) and is_rank(condition.this):
        return _whole(condition.args["high"])
    if not isinstance(condition, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ):
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    upper: tuple[type[exp.Expr], ...] = (exp.LT, exp.LTE, exp.EQ)
    if is_rank(right):
        left, right, upper = right, left, (exp.GT, exp.GTE, exp.EQ)
    number = _whole(right)
    if not is_rank(left) or number is None or not isinstance(condition, upper):
        return None
    return number - 1 if isinstance(condition, exp.LT | exp.GT) else number


def _whole(tree: exp.Expr) -> int | None:
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal():
        return int(tree.name)
    return None
