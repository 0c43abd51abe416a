"""A parsed query bound to the catalog: every name known, subqueries dissolved into one join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.sql.bind_from import BoundQuery, Entry, FromBinder
from nilometer.sql.bind_windows import bind_windows
from nilometer.sql.catalog import Catalog
from nilometer.sql.expression_binder import ExpressionBinder
from nilometer.sql.named_queries import named_queries
from nilometer.sql.plan import RESULT_TIME, Item, JoinPlan
from nilometer.sql.refuse import refuse_query
from nilometer.sql.scalars import Ref, ResolvedColumn, Scalar, column, conjuncts, place_of
from nilometer.sql.scope import Scope, find_name
from nilometer.sql.statements import Statement


def bind(statement: Statement, catalog: Catalog) -> JoinPlan:
    """The plan of a statement, before any rule."""
    bound = _Binder(statement.sql, catalog).query(statement.tree, prefix=None, named={})
    items = bound.items
    _refuse_other_times(bound)
    if not any(item.name.lower() == RESULT_TIME.column for item in items):
        place = Place(statement.sql, 0, 0)
        items = (*items, Item(RESULT_TIME.column, Scalar(column(RESULT_TIME), place)))
    return JoinPlan(
        statement.sql,
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
        while isinstance(tree, exp.Subquery) and tree.is_wrapper:
            tree = tree.this
        refuse_query(tree, self.sql)
        assert isinstance(tree, exp.Select)
        named = {**named, **named_queries(tree, self.sql)}
        binder = FromBinder(self.sql, self.catalog, prefix, named, self.query)
        entries = list(binder.entries(tree))
        scope = self._scope(tree, entries, is_outermost=prefix is None)
        conditions = [c for e in entries if not e.has_rows for c in e.bound.conditions]
        conditions += self._conditions(tree, scope)
        clause = tree.args.get("windows")
        windows = bind_windows(clause, [(e.unit, e.bound, e.window) for e in entries], scope)
        return BoundQuery(
            tuple(source for e in entries for source in binder.sources(e, scope)),
            windows.windows,
            (*conditions, *windows.conditions),
            tuple(self._items(tree, scope)),
            None if clause is None else place_of(clause, self.sql),
        )

    def _scope(self, tree: exp.Select, entries: list[Entry], is_outermost: bool) -> Scope:
        units = tuple(entry.unit for entry in entries)
        using = tuple(tuple(join.args.get("using") or ()) for join in tree.args.get("joins") or ())
        shared: dict[str, str] = {}
        for number, names in enumerate(using, start=1):
            for name in names:
                owner = next((u for u in units[:number] if find_name(name, u.columns)), None)
                if owner is not None:
                    shared.setdefault(name.name.lower(), owner.name)
        return Scope(self.sql, units, shared, using, is_outermost)

    def _conditions(self, tree: exp.Select, scope: Scope) -> Iterator[Scalar]:
        for number, join in enumerate(tree.args.get("joins") or (), start=1):
            seen, later = scope.units[: number + 1], scope.units[number + 1 :]
            visible = replace(scope, units=seen, later=later, is_outermost=False)
            if join.args.get("on"):
                for condition in conjuncts(join.args["on"]):
                    yield ExpressionBinder(visible, "ON").bind(condition)
            for name in join.args.get("using") or ():
                yield self._using(name, visible)
        where = tree.args.get("where")
        if where is not None:
            for condition in conjuncts(where.this):
                yield ExpressionBinder(replace(scope, is_outermost=False), "WHERE").bind(condition)

    def _using(self, name: exp.Identifier, scope: Scope) -> Scalar:
        left = replace(scope, units=scope.units[:-1]).resolve(name, [name])
        right = replace(scope, units=scope.units[-1:]).resolve(name, [name])
        return Scalar(exp.EQ(this=left, expression=right), place_of(name, self.sql))

    def _items(self, tree: exp.Select, scope: Scope) -> Iterator[Item]:
        binder = ExpressionBinder(scope, "SELECT")
        for expression in tree.expressions:
            starred = binder.starred(expression)
            if starred is None:
                value = binder.bind(expression.unalias())
                yield Item(_item_name(expression, value), value)
                continue
            for one in starred:
                yield Item(one.name, Scalar(one.meaning, place_of(expression, self.sql)))


def _refuse_other_times(bound: BoundQuery) -> None:
    """Only the time of a result may be named _time."""
    times = [source.time for source in bound.sources if not source.is_table]
    own = {RESULT_TIME, *(times if len(times) == 1 else ())}
    for item in bound.items:
        if item.name.lower() == RESULT_TIME.column and not own.issuperset(_as_column(item)):
            raise SqlError(
                "every result has a _time of its own, the latest of its rows'",
                place=item.value.place,
                hint="give this column another name: … AS other",
            )


def _as_column(item: Item) -> tuple[Ref | None, ...]:
    tree = item.value.tree
    return (tree.ref if isinstance(tree, ResolvedColumn) else None,)


def _item_name(expression: exp.Expr, value: Scalar) -> str:
    if isinstance(expression, exp.Alias):
        return expression.alias
    if isinstance(expression, exp.Column | exp.Dot) and expression.name:
        return expression.name
    place = value.place
    return " ".join(place.sql[place.start : place.end].split())
