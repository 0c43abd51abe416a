"""A parsed query bound to the catalog: every name known, subqueries dissolved into one join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from nilometer.errors import (
    AmbiguousNameError,
    NotYetError,
    Place,
    SqlError,
    UnknownNameError,
)
from nilometer.model.names import nearest
from nilometer.model.windows import Window
from nilometer.sql.bind_windows import bind_windows
from nilometer.sql.catalog import Catalog
from nilometer.sql.dialect import StreamWindow
from nilometer.sql.expression_binder import ExpressionBinder
from nilometer.sql.plan import RESULT_TIME, Item, JoinPlan, RowsClause, Source
from nilometer.sql.refuse import refuse_query
from nilometer.sql.scalars import ColumnRef, Scalar, column, conjuncts, place_of
from nilometer.sql.scope import Scope, Unit, find, find_name
from nilometer.sql.statements import Statement

MOST_STREAMS: Final = 16


@dataclass(frozen=True)
class BoundQuery:
    """A query whose subqueries are dissolved: sources, and what must hold between them."""

    sources: tuple[Source, ...]
    windows: tuple[Window, ...]
    conditions: tuple[Scalar, ...]
    items: tuple[Item, ...]
    windows_place: Place


def bind(statement: Statement, catalog: Catalog) -> JoinPlan:
    """The plan of a statement, before any rule."""
    bound = _Binder(statement.sql, catalog).query(statement.tree, prefix=None, named={})
    items = bound.items
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
class _From:
    """One entry of FROM, bound."""

    unit: Unit
    bound: BoundQuery
    window: StreamWindow | None
    place: Place


@dataclass(frozen=True)
class _Binder:
    sql: str
    catalog: Catalog
    most_streams: int = MOST_STREAMS

    def query(
        self, tree: exp.Expr, prefix: str | None, named: Mapping[str, exp.Query]
    ) -> BoundQuery:
        """Bind a query whose streams' names begin with the prefix."""
        while isinstance(tree, exp.Subquery) and not tree.alias:
            tree = tree.this
        refuse_query(tree, self.sql)
        assert isinstance(tree, exp.Select)
        named = {**named, **self._named_queries(tree)}
        entries = list(self._entries(tree, prefix, named))
        scope = self._scope(tree, entries, is_outermost=prefix is None)
        conditions = [c for e in entries if not _has_rows(e) for c in e.bound.conditions]
        conditions += self._conditions(tree, scope)
        place = _windows_place(tree, self.sql)
        windows = bind_windows(
            tree.args.get("windows"),
            [(e.unit, e.bound, e.window) for e in entries],
            scope,
        )
        return BoundQuery(
            self._sources(entries, scope),
            windows.windows,
            (*conditions, *windows.conditions),
            tuple(self._items(tree, scope)),
            place,
        )

    def _named_queries(self, tree: exp.Select) -> dict[str, exp.Query]:
        with_clause = tree.args.get("with_")
        if with_clause is None:
            return {}
        if with_clause.args.get("recursive"):
            raise SqlError(
                "recursive queries are not part of this dialect",
                place=place_of(with_clause, self.sql),
            )
        return {query.alias.lower(): query.this for query in with_clause.expressions}

    def _entries(
        self, tree: exp.Select, prefix: str | None, named: Mapping[str, exp.Query]
    ) -> Iterator[_From]:
        trees = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
        if len(trees) > self.most_streams:
            raise SqlError(
                f"a query joins at most {self.most_streams} streams, got {len(trees)}",
                place=place_of(trees[self.most_streams], self.sql),
            )
        alone = len(trees) == 1
        before: exp.Table | None = None
        taken: dict[str, Place] = {}
        for entry in trees:
            if isinstance(entry, exp.Table) and self._is_second_alias(entry, before, named):
                assert before is not None
                entry = _aliased(before, entry)  # noqa: PLW2901
            bound = self._entry(entry, prefix, alone, named)
            if bound.unit.name.lower() in taken:
                raise AmbiguousNameError(
                    f"two entries of FROM are named {bound.unit.name}",
                    place=bound.place,
                    hint=f"give one of them an alias: {_table_name(entry)} AS other",
                )
            taken[bound.unit.name.lower()] = bound.place
            before = entry if isinstance(entry, exp.Table) else None
            yield bound

    def _is_second_alias(
        self, entry: exp.Table, before: exp.Table | None, named: Mapping[str, exp.Query]
    ) -> bool:
        """STEAM writes FROM SensorTables A, B, C: B and C are further aliases of the table."""
        if before is None or not before.alias or entry.alias or entry.args.get("db"):
            return False
        known = [*self.catalog.relations, *named]
        unknown = find_name(entry.this, known) is None if _is_name(entry) else False
        return unknown and nearest(entry.name, known) is None

    def _entry(
        self, entry: exp.Expr, prefix: str | None, alone: bool, named: Mapping[str, exp.Query]
    ) -> _From:
        place = place_of(entry, self.sql)
        window = _stream_window(entry)
        if isinstance(entry, exp.Subquery):
            if not entry.alias:
                raise SqlError(
                    "a subquery in FROM needs a name", place=place, hint="write (SELECT …) AS S"
                )
            return self._subquery(entry.alias, entry.this, place, window, prefix, alone, named)
        if not isinstance(entry, exp.Table) or not _is_name(entry) or _has_extras(entry):
            raise SqlError(
                "FROM lists streams, tables and subqueries",
                place=place,
                hint="write FROM Camera1 A, Camera2 B",
            )
        query = named.get(entry.name.lower())
        if query is not None:
            inner = {name: q for name, q in named.items() if name != entry.name.lower()}
            return self._subquery(
                entry.alias or entry.name, query, place, window, prefix, alone, inner
            )
        return self._relation(entry, place, window, prefix, alone)

    def _subquery(
        self,
        name: str,
        query: exp.Expr,
        place: Place,
        window: StreamWindow | None,
        prefix: str | None,
        alone: bool,
        named: Mapping[str, exp.Query],
    ) -> _From:
        bound = self.query(query, _full_name(prefix, name, alone), named)
        columns: dict[str, exp.Expr] = {}
        for item in bound.items:
            if item.name in columns:
                raise AmbiguousNameError(
                    f"the subquery {name} has two columns named {item.name}",
                    place=item.value.place,
                    hint="rename one: … AS other",
                )
            columns[item.name] = item.value.tree
        times = tuple(source.time for source in bound.sources if not source.is_table)
        unit = Unit(name, columns, times, {s.name: s.relation for s in bound.sources})
        return _From(unit, bound, window, place)

    def _relation(
        self,
        entry: exp.Table,
        place: Place,
        window: StreamWindow | None,
        prefix: str | None,
        alone: bool,
    ) -> _From:
        relation = find(entry.this, list(self.catalog.relations.values()))
        if relation is None:
            raise UnknownNameError(
                f"there is no stream or table {entry.name}",
                place=place_of(entry.this, self.sql),
                detail=f"there are {', '.join(self.catalog.relations) or 'none yet'}",
                hint=nearest(entry.name, self.catalog.relations),
            )
        name = entry.alias or entry.name
        full = _full_name(prefix, name, alone)
        columns = {c: column(ColumnRef(full, c)) for c in relation.columns}
        times = () if relation.is_table else (ColumnRef(full, relation.time_column),)
        source = Source(full, relation, place)
        bound = BoundQuery((source,), (), (), (), place)
        return _From(Unit(name, columns, times, {full: relation}), bound, window, place)

    def _scope(self, tree: exp.Select, entries: list[_From], is_outermost: bool) -> Scope:
        units = tuple(entry.unit for entry in entries)
        shared: dict[str, str] = {}
        for number, join in enumerate(tree.args.get("joins") or (), start=1):
            for name in join.args.get("using") or ():
                owner = next((u for u in units[:number] if find_name(name, u.columns)), None)
                if owner is not None:
                    shared.setdefault(name.name.lower(), owner.name)
        return Scope(self.sql, units, shared, is_outermost)

    def _conditions(self, tree: exp.Select, scope: Scope) -> Iterator[Scalar]:
        for number, join in enumerate(tree.args.get("joins") or (), start=1):
            visible = replace(scope, units=scope.units[: number + 1])
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
            units = binder.starred(expression)
            if units is None:
                value = binder.bind(expression.unalias())
                yield Item(_item_name(expression, value), value)
                continue
            for name, meaning in scope.star(units):
                yield Item(name, Scalar(meaning, place_of(expression, self.sql)))

    def _sources(self, entries: list[_From], scope: Scope) -> tuple[Source, ...]:
        return tuple(source for entry in entries for source in self._windowed_sources(entry, scope))

    def _windowed_sources(self, entry: _From, scope: Scope) -> Iterator[Source]:
        window = entry.window
        if window is None or not _has_rows(entry):
            yield from entry.bound.sources
            return
        place = place_of(window, self.sql)
        source = entry.bound.sources[0]
        if len(entry.bound.sources) > 1 or source.rows is not None:
            raise NotYetError(
                "a ROWS window over a join, or over another ROWS window, cannot be run yet",
                place=place,
                hint="put the window behind the streams inside the subquery",
            )
        if source.is_table:
            raise SqlError(
                f"the static table {source.name} cannot have a window",
                place=place,
                hint="static tables hold for ever",
            )
        if window.args["rows"] < 1:
            raise SqlError("a ROWS window holds at least one row", place=place)
        binder = ExpressionBinder(replace(scope, units=(entry.unit,)), "PARTITION BY")
        partition = tuple(binder.bind(c) for c in window.args.get("expressions") or ())
        rows = RowsClause(window.args["rows"], partition)
        yield replace(source, rows=rows, below=entry.bound.conditions)


def _has_rows(entry: _From) -> bool:
    return entry.window is not None and entry.window.args.get("rows") is not None


def _full_name(prefix: str | None, name: str, alone: bool) -> str:
    if prefix is None:
        return name
    return prefix if alone else f"{prefix}.{name}"


def _is_name(entry: exp.Table) -> bool:
    return isinstance(entry.this, exp.Identifier) and not entry.args.get("db")


def _has_extras(entry: exp.Table) -> bool:
    known = ("this", "alias", "stream_window")
    alias = entry.args.get("alias")
    columns = alias is not None and bool(alias.args.get("columns"))
    return columns or any(value for key, value in entry.args.items() if key not in known)


def _aliased(table: exp.Table, alias: exp.Table) -> exp.Table:
    """The same table under another name."""
    copied = table.copy()
    own = alias.args.get("alias")
    name = exp.TableAlias(this=alias.this.copy())
    if own is not None and own.args.get("stream_window") is not None:
        name.set("stream_window", own.args["stream_window"])
    copied.set("alias", name)
    return copied


def _stream_window(entry: exp.Expr) -> StreamWindow | None:
    alias = entry.args.get("alias")
    return None if alias is None else alias.args.get("stream_window")


def _table_name(entry: exp.Expr) -> str:
    return entry.name if isinstance(entry, exp.Table) else "(SELECT …)"


def _windows_place(tree: exp.Select, sql: str) -> Place:
    clause = tree.args.get("windows")
    return place_of(clause if clause is not None else tree.args["from_"], sql)


def _item_name(expression: exp.Expr, value: Scalar) -> str:
    if isinstance(expression, exp.Alias):
        return expression.alias
    if isinstance(expression, exp.Column | exp.Dot) and expression.name:
        return expression.name
    place = value.place
    return " ".join(place.sql[place.start : place.end].split())
