"""The entries of FROM: streams, tables, subqueries, and queries named by WITH."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from nilometer.errors import AmbiguousNameError, NotYetError, SqlError, UnknownNameError
from nilometer.mining.registry import FunctionKind
from nilometer.model.names import nearest
from nilometer.model.time_windows import WINDOW_COLUMNS, InstantWindows
from nilometer.sql.bind.derived_entries import (
    UNION,
    appended_entry,
    derived_entry,
    require_names,
    windowed_entry,
)
from nilometer.sql.bind.expand_entries import expand_entry
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.from_aliases import rename_columns, spell_out
from nilometer.sql.bind.from_entry import BoundEntry, Deriver
from nilometer.sql.bind.inline_rows import values_relation
from nilometer.sql.bind.refuse_entry import file_hint, refuse_entry, refuse_extras
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.bind.static_entries import names_bare_time, needs_readings
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.expressions.scalars import ColumnRef, column
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.find_names import find
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.over_calls import HIDDEN, OverCall, TableOverCall, TopCall
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.window_call_parser import EndsCall, WindowCall
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Node
from nilometer.sql.plan.join_plan import RowsClause, Source
from nilometer.sql.rewrite.put_expansions import ExpandCall
from nilometer.sql.rewrite.put_unions import UnionCall

MOST_STREAMS: Final = 16
_STREAMS: Final = (TableCall, OverCall, MatchCall, UnionCall)
"""What makes one stream out of others."""
_VALUES: Final = "values"
_NOTHING: Final = BoundQuery((), (), (), (), None)


@dataclass(frozen=True)
class FromBinder:
    """Binds the entries of one FROM; subqueries are bound by `query`."""

    sql: str
    catalog: Catalog
    prefix: str | None
    named: Mapping[str, exp.CTE]
    query: Callable[[exp.Expr, str | None, Mapping[str, exp.CTE]], BoundQuery]
    deriver: Deriver | None = None
    """Where the answer changes: makes nodes of subqueries that cannot be flattened."""

    def entries(self, tree: exp.Select) -> Iterator[BoundEntry]:
        """The entries in order."""
        trees = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
        self._require_few(len(trees), trees[-1])
        taken: set[str] = set()
        spelled = list(spell_out(trees, [*self.catalog.relations, *self.named]))
        static = self._static(tree, spelled)
        bound: list[BoundEntry] = []
        for entry in spelled:
            if isinstance(entry.this, ExpandCall):
                bound = expand_entry(entry, entry.this, bound, self.catalog, self.sql)
            else:
                bound.append(self._entry(entry, len(trees) == 1, id(entry) in static))
        for one in bound:
            if one.unit.name.lower() in taken:
                raise AmbiguousNameError(
                    f"two sources in FROM are named {one.unit.name}",
                    place=one.place,
                    hint=f"give one of them an alias: {one.unit.origin or '(SELECT …)'} AS other",
                )
            taken.add(one.unit.name.lower())
        self._require_few(sum(len(one.bound.sources) for one in bound), trees[-1])
        self._refuse_rows_inside(bound)
        self._name_common(tree, bound)
        self._refuse_windows_of_lasting(bound)
        return iter(bound)

    def _name_common(self, tree: exp.Select, entries: list[BoundEntry]) -> None:
        """Write NATURAL JOIN as USING with the columns that both sides have."""
        for number, join in enumerate(tree.args.get("joins") or (), start=1):
            if str(join.args.get("method") or "").upper() != "NATURAL":
                continue
            seen = {name.lower() for one in entries[:number] for name in one.unit.columns}
            own = entries[number].unit.columns
            common = [name for name in own if name.lower() in seen]
            if not common:
                raise SqlError(
                    "the two sides of a NATURAL JOIN have no common column",
                    place=place_of(join, self.sql),
                    hint="write JOIN … ON, or CROSS JOIN",
                )
            join.set("using", [exp.to_identifier(name) for name in common])

    def _refuse_windows_of_lasting(self, entries: list[BoundEntry]) -> None:
        """Refuse windows over rows that say themselves until when they count."""
        for entry in entries:
            lasting = [one for one in entry.bound.sources if one.until is not None]
            if entry.window is not None and lasting:
                until = lasting[0].until
                raise SqlError(
                    f"{entry.unit.name} cannot have a window",
                    place=place_of(entry.window, self.sql),
                    detail=f"its rows are valid from {lasting[0].relation.time_column} to "
                    f"{until.column if until is not None else ''}",
                    hint="leave the window out",
                )

    def _static(self, tree: exp.Select, entries: list[exp.Expr]) -> set[int]:
        """The ids of sensor tables of which only static columns are needed."""
        static: set[int] = set()
        streams = 0
        for entry in entries:
            relation = self._known(entry)
            streams += relation is None or not relation.is_table
            if relation is not None and relation.sensors is not None:
                assert isinstance(entry, exp.Table)
                if not needs_readings(tree, entry, relation):
                    static.add(id(entry))
        if len(static) == streams and names_bare_time(tree):
            return set()
        return static

    def _known(self, entry: exp.Expr) -> Relation | None:
        """The relation of the catalog that an entry names, if it names one."""
        if not isinstance(entry, exp.Table) or entry.name.lower() in self.named:
            return None
        if not isinstance(entry.this, exp.Identifier):
            return None
        return find(entry.this, list(self.catalog.relations.values()))

    def _require_few(self, streams: int, last: exp.Expr) -> None:
        if streams > MOST_STREAMS:
            raise SqlError(
                f"a query joins at most {MOST_STREAMS} streams, got {streams}",
                place=place_of(last, self.sql),
                hint="subqueries count with all their streams",
            )

    def sources(self, entry: BoundEntry, scope: Scope) -> Iterator[Source]:
        """The streams and tables of an entry, with the ROWS window behind it."""
        if entry.window is None or not entry.has_rows:
            yield from entry.bound.sources
            return
        window, place = entry.window, place_of(entry.window, self.sql)
        source = entry.bound.sources[0]
        if len(entry.bound.sources) > 1 or source.rows is not None:
            raise NotYetError(
                "appending the results of a ROWS window over a join is not supported yet",
                place=place,
                hint="write EMIT CHANGES, or put the window after the streams inside the subquery",
            )
        if source.is_table:
            raise SqlError(
                f"the static table {entry.unit.name} cannot have a window",
                place=place,
                hint="rows of static tables never expire",
            )
        if window.args["rows"] < 1:
            raise SqlError(
                "a ROWS window must hold at least one row", place=place, hint="write [ROWS 1]"
            )
        binder = ExpressionBinder(replace(scope, units=(entry.unit,)), "PARTITION BY")
        partition = tuple(binder.bind(c) for c in window.args.get("expressions") or ())
        rows = RowsClause(window.args["rows"], place, partition)
        yield replace(source, rows=rows, below=entry.bound.conditions)

    def _refuse_rows_inside(self, entries: list[BoundEntry]) -> None:
        """Refuse ROWS windows inside a joined subquery: not supported yet."""
        if self.deriver is not None or sum(bool(entry.unit.times) for entry in entries) < 2:
            return
        for entry in entries:
            for source in entry.bound.sources:
                if source.rows is not None:
                    raise NotYetError(
                        "joining a subquery that contains a ROWS window with appended results is "
                        "not supported yet",
                        place=source.rows.place,
                        hint="write EMIT CHANGES, or put the window after the subquery: … AS S "
                        "[ROWS 5]",
                    )

    def _entry(self, entry: exp.Expr, alone: bool, static: bool) -> BoundEntry:
        if isinstance(entry.this, TableCall):
            return self._with_names(self._function(entry, entry.this, alone), entry)
        if isinstance(entry.this, TopCall | TableOverCall):
            return self._with_names(self._ordered(entry, entry.this, alone), entry)
        if isinstance(entry.this, MatchCall):
            return self._with_names(self._matches(entry, entry.this, alone), entry)
        if isinstance(entry.this, OverCall | EndsCall | UnionCall):
            return self._with_names(self._stream(entry, entry.this, alone), entry)
        if isinstance(entry.this, WindowCall):
            return self._with_names(self._in_windows(entry, entry.this, alone), entry)
        if isinstance(entry, exp.Values):
            refuse_extras(entry, self.sql)
            relation = values_relation(entry, self.sql, self.catalog)
            name = entry.alias or _VALUES
            return self._with_names(self._rows_of(relation, entry, name, None, alone), entry)
        refuse_entry(entry, self.sql)
        if isinstance(entry, exp.Subquery):
            bound = self._subquery(entry, entry.this, None, alone, self.named)
            return self._with_names(bound, entry)
        assert isinstance(entry, exp.Table)
        name = entry.name.lower()
        if name not in self.named:
            return self._with_names(self._relation(entry, alone, static), entry)
        query = self.named[name]
        others = {other: q for other, q in self.named.items() if other != name}
        bound = self._subquery(entry, query.this, entry.name, alone, others)
        return self._with_names(bound, query, entry)

    def _function(self, entry: exp.Expr, call: TableCall, alone: bool) -> BoundEntry:
        refuse_extras(entry, self.sql)
        assert self.deriver is not None
        name = entry.alias or call.function.lower()
        node = self.deriver.derive_call(call, self.named)
        if node.kind is FunctionKind.ANSWERS:
            empty = self._without_rows(entry, name, call.function)
            return derived_entry(empty, self._full_name(name, alone), node, self.sql)
        return self._appended(entry, name, call.function, node, alone)

    def _appended(
        self, entry: exp.Expr, name: str, origin: str, node: Node, alone: bool
    ) -> BoundEntry:
        """The entry whose rows a node appends."""
        assert self.deriver is not None
        empty, full = self._without_rows(entry, name, origin), self._full_name(name, alone)
        return appended_entry(empty, full, node, self.deriver.appends, self.sql)

    def _without_rows(self, entry: exp.Expr, name: str, origin: str | None) -> BoundEntry:
        """An entry whose rows are added later."""
        unit = FromUnit(name, {}, (), {}, origin)
        return BoundEntry(unit, _NOTHING, stream_window(entry), place_of(entry, self.sql))

    def _ordered(self, entry: exp.Expr, call: TopCall | TableOverCall, alone: bool) -> BoundEntry:
        assert self.deriver is not None
        empty = replace(self._without_rows(entry, entry.alias, entry.alias), window=None)
        if isinstance(call, TopCall):
            node = self.deriver.derive_top(call, self.named)
        else:
            node = self.deriver.derive_table_over(call, self.named)
        return derived_entry(empty, self._full_name(entry.alias, alone), node, self.sql)

    def _matches(self, entry: exp.Expr, call: MatchCall, alone: bool) -> BoundEntry:
        refuse_extras(entry, self.sql)
        assert self.deriver is not None
        input_name = call.args["input"].alias_or_name
        name = entry.alias or input_name or "matches"
        node = self.deriver.derive_match(call, self.named)
        return self._appended(entry, name, f"{input_name} MATCH_RECOGNIZE ".lstrip(), node, alone)

    def _stream(
        self, entry: exp.Expr, call: OverCall | EndsCall | UnionCall, alone: bool
    ) -> BoundEntry:
        assert self.deriver is not None
        origin = entry.alias
        if isinstance(call, OverCall):
            stream = self.deriver.derive_over(call, self.named)
        elif isinstance(call, EndsCall):
            stream = self.deriver.derive_ends(call, self.named)
        else:
            refuse_extras(entry, self.sql)
            stream, origin = self.deriver.derive_union(call, self.named), UNION
            require_names(entry.alias, stream.node.columns, place_of(entry, self.sql))
        bound = self._appended(entry, entry.alias, origin, stream.node, alone)
        times = {name: column(bound.unit.times[0]) for name in stream.times}
        unit = replace(bound.unit, columns={**bound.unit.columns, **times})
        (source,) = bound.bound.sources
        sources = (replace(source, in_order=stream.in_order),)
        return replace(bound, unit=unit, bound=replace(bound.bound, sources=sources))

    def _in_windows(self, entry: exp.Expr, call: WindowCall, alone: bool) -> BoundEntry:
        refuse_extras(entry, self.sql)
        assert self.deriver is not None
        name = entry.alias or call.args["input"].alias_or_name or call.function.lower()
        empty = self._without_rows(entry, name, call.function)
        clause, node = self.deriver.derive_windows(call, self.named)
        bound = derived_entry(empty, self._full_name(name, alone), node, self.sql)
        # The columns by which sessions are separated are not shown, nor the bounds of an instant.
        shown = {item.name for item in clause.query.items}
        if not isinstance(call.windows, InstantWindows):
            shown.update(WINDOW_COLUMNS)
        columns = {name: tree for name, tree in bound.unit.columns.items() if name in shown}
        bound = replace(bound, unit=replace(bound.unit, columns=columns))
        (source,) = bound.bound.sources
        sources = (replace(source, in_windows=clause),)
        return replace(bound, bound=replace(bound.bound, sources=sources))

    def _with_names(self, bound: BoundEntry, *named: exp.Expr) -> BoundEntry:
        """The entry, its columns under the names that aliases give them."""
        columns = bound.unit.columns
        for one in named:
            columns = rename_columns(one, columns, self.sql)
        hidden = frozenset(named[0].meta.get(HIDDEN, ()))
        return replace(bound, unit=replace(bound.unit, columns=columns, hidden=hidden))

    def _subquery(
        self,
        entry: exp.Expr,
        query: exp.Expr,
        origin: str | None,
        alone: bool,
        named: Mapping[str, exp.CTE],
    ) -> BoundEntry:
        name, place = entry.alias_or_name, place_of(entry, self.sql)
        window, full = stream_window(entry), self._full_name(name, alone)
        if self.deriver is not None:
            empty = self._without_rows(entry, name, origin)
            if window is not None and query.find(*_STREAMS) is not None:
                node = self.deriver.derive_appended(query, named, name)
                return appended_entry(empty, full, node, self.deriver.appends, self.sql)
            if not self.deriver.is_plain(query):
                return derived_entry(empty, full, self.deriver.derive(query, named), self.sql)
        bound = self.query(query, full, named)
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
        relations = {source.name: source.relation for source in bound.sources}
        is_derived = any(source.node is not None for source in bound.sources)
        unit = FromUnit(name, columns, times, relations, origin, is_derived)
        read = BoundEntry(unit, bound, window, place)
        if self.deriver is None or window is None:
            return read
        return windowed_entry(read, None if alone else full, self.deriver, self.sql)

    def _relation(self, entry: exp.Table, alone: bool, static: bool) -> BoundEntry:
        relation = find(entry.this, list(self.catalog.relations.values()))
        if relation is None:
            known = [*self.catalog.relations, *self.catalog.queries]
            raise UnknownNameError(
                f"there is no stream or table {entry.name}",
                place=place_of(entry.this, self.sql),
                detail=f"there are {', '.join(known) or 'none yet'}",
                hint=file_hint(entry.name) or nearest(entry.name, known),
            )
        origin = relation.name
        if static:
            relation = relation.sensor_rows
        return self._rows_of(relation, entry, entry.alias_or_name, origin, alone)

    def _rows_of(
        self, relation: Relation, entry: exp.Expr, name: str, origin: str | None, alone: bool
    ) -> BoundEntry:
        place, full = place_of(entry, self.sql), self._full_name(name, alone)
        columns = {c: column(ColumnRef(full, c)) for c in relation.shown_columns}
        times = () if relation.is_table else (ColumnRef(full, relation.time_column),)
        source = Source(full, relation, place, until=self._until(full, relation))
        bound = BoundQuery((source,), (), (), (), None)
        unit = FromUnit(name, columns, times, {full: relation}, origin)
        return BoundEntry(unit, bound, stream_window(entry), place)

    def _until(self, name: str, relation: Relation) -> ColumnRef | None:
        """The column until which rows count, where rows are retracted; appended rows never are."""
        if relation.end is None or self.deriver is None or self.deriver.appends:
            return None
        first, *fields = relation.end
        return ColumnRef(name, first, tuple(fields))

    def _full_name(self, name: str, alone: bool) -> str:
        if self.prefix is None:
            return name
        return self.prefix if alone else f"{self.prefix}.{name}"


def stream_window(entry: exp.Expr) -> StreamWindow | None:
    """The window behind an entry of FROM, if it has one."""
    alias = entry.args.get("alias")
    return None if alias is None else alias.args.get("stream_window")
