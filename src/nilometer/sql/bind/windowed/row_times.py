"""The time of the rows of a stream, where a clause names it."""

from __future__ import annotations

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import Scope
from nilometer.sql.expressions.scalars import RESULT_TIME, ColumnRef, ResolvedColumn, column
from nilometer.sql.parse.places import place_of, text_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import RESULT_TIME_NAME


def require_ascending(window: exp.Expr, bound: BoundQuery, scope: Scope, sql: str) -> None:
    """Refuse OVER of a stream in another order than that of time."""
    order = window.args.get("order")
    keys = [] if order is None else order.expressions
    if len(keys) != 1 or keys[0].args.get("desc"):
        raise SqlError(
            "OVER on a stream must be ordered by time",
            place=place_of(window, sql),
            detail="so that the result for a row is known when the row arrives",
            hint="write OVER (PARTITION BY k ORDER BY ts)",
        )
    require_time(keys[0].this, bound, scope, sql)


def require_time(named: exp.Expr | None, bound: BoundQuery, scope: Scope, sql: str) -> None:
    """Refuse windows over anything but the time of the rows."""
    times = [source.time for source in bound.sources if not source.is_table]
    if named is None:
        return
    scalar = ExpressionBinder(scope, "DESCRIPTOR").bind(named)
    if len(times) == 1 and scalar.columns == (times[0],) and scalar.tree == column(times[0]):
        return
    if scalar.columns == (RESULT_TIME,):
        return
    ordered = {ColumnRef(one.name, name) for one in bound.sources for name in one.in_order}
    if len(scalar.columns) == 1 and scalar.columns[0] in ordered:
        return
    is_named = len(times) == 1 and times[0].column != RESULT_TIME_NAME
    shown = times[0].column if is_named else "_time"
    raise SqlError(
        f"{text_of(named, sql)} is not the time of these rows",
        place=place_of(named, sql),
        detail="time windows must use the time that the stream is ordered by",
        hint=f"that is {shown}",
    )


def is_time(tree: exp.Expr, bound: BoundQuery) -> bool:
    """Whether an expression is the time of the only stream of a query."""
    times = [source.time for source in bound.sources if not source.is_table]
    return len(times) == 1 and isinstance(tree, ResolvedColumn) and tree.ref == times[0]
