"""A parsed query bound to the catalog: every name resolved, subqueries flattened into one join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.sql.bind.bind_from import FromBinder
from nilometer.sql.bind.bind_select import conditions_of, items_of, scope_of
from nilometer.sql.bind.bind_windows import bind_windows
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.refuse import refuse_query
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.growth import PARTS_OF_QUERY, grow
from nilometer.sql.expressions.scalars import RESULT_TIME, Ref, ResolvedColumn, Scalar, column
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.join_plan import Item, JoinPlan
from nilometer.sql.rewrite.modes import unwrap


def bind(
    tree: exp.Expr, sql: str, catalog: Catalog, named: Mapping[str, exp.CTE] | None = None
) -> JoinPlan:
    """The plan of an append query, before any rule; `named` are the queries of WITH."""
    bound = _Binder(sql, catalog).query(tree, prefix=None, named=named or {})
    items = bound.items
    _refuse_other_times(bound)
    if not any(item.name.lower() == RESULT_TIME.column for item in items):
        place = Place(sql, 0, 0)
        items = (*items, Item(RESULT_TIME.column, Scalar(column(RESULT_TIME), place)))
    return JoinPlan(
        sql,
        catalog,
        bound.sources,
        bound.windows,
        bound.conditions,
        items,
        bound.windows_place,
    )


@dataclass(frozen=True)
class _Binder:
    sql: str
    catalog: Catalog

    def query(self, tree: exp.Expr, prefix: str | None, named: Mapping[str, exp.CTE]) -> BoundQuery:
        """Bind a query whose streams' names begin with the prefix."""
        tree = unwrap(tree)
        refuse_query(tree, self.sql)
        assert isinstance(tree, exp.Select)
        grow(PARTS_OF_QUERY, place_of(tree, self.sql))
        named = {**named, **named_queries(tree, self.sql)}
        binder = FromBinder(self.sql, self.catalog, prefix, named, self.query)
        entries = list(binder.entries(tree))
        scope = scope_of(tree, [e.unit for e in entries], self.sql, is_outermost=prefix is None)
        conditions = [c for e in entries if not e.has_rows for c in e.bound.conditions]
        conditions += conditions_of(tree, scope)
        clause = tree.args.get("windows")
        windows = bind_windows(clause, [(e.unit, e.bound, e.window) for e in entries], scope)
        return BoundQuery(
            tuple(source for e in entries for source in binder.sources(e, scope)),
            windows.windows,
            (*conditions, *windows.conditions),
            tuple(items_of(tree, ExpressionBinder(scope, "SELECT"))),
            None if clause is None else place_of(clause, self.sql),
        )


def _refuse_other_times(bound: BoundQuery) -> None:
    """Only the time of a result may be named _time."""
    times = [source.time for source in bound.sources if not source.is_table]
    own = {RESULT_TIME, *(times if len(times) == 1 else ())}
    for item in bound.items:
        if item.name.lower() == RESULT_TIME.column and not own.issuperset(_as_column(item)):
            raise SqlError(
                "every result already has a column _time, the latest time of its rows",
                place=item.value.place,
                hint="give this column another name: … AS other",
            )


def _as_column(item: Item) -> tuple[Ref | None, ...]:
    tree = item.value.tree
    return (tree.ref if isinstance(tree, ResolvedColumn) else None,)
