"""What FROM and WHERE of a changing query hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import SqlError, UnknownNameError
from nilometer.model.windows import RangeWindow
from nilometer.operators.change_specs import SetFunction
from nilometer.sql.bind_from import FromBinder
from nilometer.sql.bind_select import items_of, join_conditions, scope_of, where_conditions
from nilometer.sql.bind_windows import bind_windows, written_windows
from nilometer.sql.bound_query import BoundQuery, Deriver, Entry
from nilometer.sql.changes_plan import Counted, Lifetime, Node
from nilometer.sql.derived import columns_of_source, derived_source
from nilometer.sql.expression_binder import ExpressionBinder
from nilometer.sql.modes import unwrap
from nilometer.sql.named_queries import named_queries
from nilometer.sql.plan import Source
from nilometer.sql.refuse import refuse_query
from nilometer.sql.scalars import Scalar, conjuncts, place_of
from nilometer.sql.scope import Scope, Unit
from nilometer.sql.windowed.build_nodes import NodeBuilder, at_most
from nilometer.sql.windowed.exists import ExistsTest, read_exists
from nilometer.sql.windowed.held_units import Held, merge, unit_time, wanted_by
from nilometer.sql.windowed.lifetimes import find_lifetimes, timed_entry
from nilometer.sql.windowed.outer_joins import OuterJoin
from nilometer.sql.windowed.refusals import require_comparable_rows

Named = Mapping[str, exp.CTE]


@dataclass(frozen=True)
class RowsBinder:
    """Binds FROM and WHERE; `query` dissolves subqueries, `deriver` makes nodes of others."""

    sql: str
    builder: NodeBuilder
    query: Callable[[exp.Expr, str | None, Named], BoundQuery]
    deriver: Deriver

    def bind(
        self, tree: exp.Select, prefix: str | None, named: Named, outer: Scope | None = None
    ) -> tuple[BoundQuery, Scope]:
        """The rows, and the names that the rest of the query can use."""
        binder = FromBinder(self.sql, self.builder.catalog, prefix, named, self.query, self.deriver)
        parts = _Parts(self, tree, list(binder.entries(tree)), outer)
        sources = [tuple(binder.sources(e, parts.scope)) for e in parts.entries]
        plain, tests = parts.where()
        joins = tree.args.get("joins") or ()
        if any(join.args.get("side") for join in joins):
            held = parts.joined(sources, plain)
        else:
            held = parts.listed(sources, plain)
        scope = parts.scope_over(held.units)
        for test in tests:
            held = self._tested(tree, held, test, scope, named)
            scope = parts.scope_over(held.units)
        return held.rows, scope

    def _tested(
        self, tree: exp.Select, held: Held, test: ExistsTest, scope: Scope, named: Named
    ) -> Held:
        """The rows that pass EXISTS."""
        place = place_of(test.tree, self.sql)
        wanted = wanted_by(tree, with_times=False)
        node = self.builder.build(held.rows, wanted.items(held.units))
        require_comparable_rows(node.columns, place, "a query with EXISTS")
        own = wanted.derive(held.units, node, place)
        around = replace(scope, units=own.units)
        inner = self._partners(test, around, named)
        partners = self.builder.build(merge(own.rows, inner, ()), wanted.items(own.units))
        function = SetFunction.WITHOUT if test.negated else SetFunction.WITH
        passed = Counted(function, (node, partners), node.columns)
        return wanted.derive(held.units, passed, place)

    def _partners(self, test: ExistsTest, around: Scope, named: Named) -> BoundQuery:
        """The rows of the query inside EXISTS, with its conditions on those around it."""
        query = unwrap(test.query)
        if isinstance(query, exp.Select) and query.args.get("distinct") is not None:
            query = query.copy()
            query.set("distinct", None)
        if not self.deriver.is_plain(query):
            node = self._uncorrelated(query, named)
            source = derived_source("the subquery", node, place_of(test.tree, self.sql))
            columns = list(columns_of_source(source).values())
            rows = BoundQuery((source,), (), (), (), None)
            return self._with_value(test, around, rows, columns)
        assert isinstance(query, exp.Select)
        refuse_query(query, self.sql)
        named = {**named, **named_queries(query, self.sql)}
        rows, scope = self.bind(query, None, named, around)
        if test.value is None:
            return rows
        listed = [item.value.tree for item in items_of(query, ExpressionBinder(scope, "SELECT"))]
        return self._with_value(test, around, rows, listed)

    def _uncorrelated(self, query: exp.Expr, named: Named) -> Node:
        """The node of a query inside EXISTS that stands alone."""
        try:
            return self.deriver.derive(query, named)
        except UnknownNameError as error:
            hint = "inside EXISTS, only a plain SELECT … FROM … WHERE can use the names around it"
            raise UnknownNameError(
                error.message, place=error.place, detail=error.detail, hint=error.hint or hint
            ) from None

    def _with_value(
        self, test: ExistsTest, around: Scope, rows: BoundQuery, columns: Sequence[exp.Expr]
    ) -> BoundQuery:
        """The rows whose only column is the value before IN."""
        if test.value is None:
            return rows
        place = place_of(test.tree, self.sql)
        if len(columns) != 1:
            raise SqlError(
                f"IN compares with one column, got {len(columns)}",
                place=place,
                hint="select one column in the subquery",
            )
        value = ExpressionBinder(around, "WHERE").bind(test.value)
        equal = exp.EQ(this=value.tree, expression=columns[0].copy())
        return replace(rows, conditions=(*rows.conditions, Scalar(equal, place)))


@dataclass(frozen=True)
class _Parts:
    """The entries of one FROM, to be put together."""

    binder: RowsBinder
    tree: exp.Select
    entries: list[Entry]
    outer: Scope | None

    @property
    def scope(self) -> Scope:
        return self.scope_over([entry.unit for entry in self.entries])

    def scope_over(self, units: Sequence[Unit], before: int | None = None) -> Scope:
        """The names of the query, where its units are held by something else.

        What USING merges counts, if told so, only up to the join before that number.
        """
        scope = scope_of(self.tree, units, self.binder.sql, is_outermost=False)
        merged = self._merged(scope, len(units) if before is None else before)
        return replace(scope, outer=self.outer, merged=merged)

    def _merged(self, scope: Scope, before: int) -> dict[str, exp.Expr]:
        """Columns that USING names behind RIGHT or FULL JOIN: those of either side."""
        merged: dict[str, exp.Expr] = {}
        for number, join in enumerate(self._joins[: before - 1], start=1):
            side = str(join.args.get("side") or "").upper()
            for name in join.args.get("using") or ():
                if side not in ("RIGHT", "FULL"):
                    continue
                first = replace(scope, units=scope.units[:number], merged=merged)
                left = first.resolve(name, [name])
                right = replace(scope, units=scope.units[number : number + 1])
                other = right.resolve(name, [name])
                is_null = exp.Is(this=left.copy(), expression=exp.Null())
                either = exp.Case(ifs=[exp.If(this=is_null, true=other)], default=left)
                merged[name.name.lower()] = other if side == "RIGHT" else exp.Paren(this=either)
        return merged

    @property
    def _joins(self) -> list[exp.Join]:
        return self.tree.args.get("joins") or []

    def where(self) -> tuple[list[exp.Expr], list[ExistsTest]]:
        """The conditions of WHERE, and those that ask whether rows exist."""
        where = self.tree.args.get("where")
        plain, tests = [], []
        for condition in conjuncts(where.this) if where is not None else ():
            test = read_exists(condition, self.binder.sql)
            if test is None:
                plain.append(condition)
            else:
                tests.append(test)
        return plain, tests

    def listed(self, sources: list[tuple[Source, ...]], where: list[exp.Expr]) -> Held:
        """All entries joined."""
        scope, clause = self.scope, self.tree.args.get("windows")
        asked = [*self._on(scope.units), *where_conditions(where, scope)]
        lifetimes = self._lifetimes(sources, asked)
        units = [(e.unit, e.bound, e.window) for e in self.entries]
        windows = bind_windows(clause, units, scope, with_ranges=False)
        inner = [c for e in self.entries if not e.has_rows for c in e.bound.conditions]
        rows = BoundQuery(
            tuple(one for own in sources for one in own),
            (*windows.windows, *_ranges(lifetimes)),
            (*inner, *asked, *windows.conditions),
            (),
            None if clause is None else place_of(clause, self.binder.sql),
            (*(one for e in self.entries for one in e.bound.lifetimes), *lifetimes),
        )
        return Held(rows, tuple(entry.unit for entry in self.entries))

    def _on(self, units: Sequence[Unit]) -> Iterator[Scalar]:
        """The conditions of all joins."""
        for number, join in enumerate(self._joins, start=1):
            yield from join_conditions(join, number, self.scope_over(units, before=number))

    def _lifetimes(
        self, sources: list[tuple[Source, ...]], conditions: Sequence[Scalar]
    ) -> tuple[Lifetime, ...]:
        units = [(e.unit, e.bound, e.window) for e in self.entries]
        written = written_windows(self.tree.args.get("windows"), units, self.scope)
        timed = [timed_entry(e, s) for e, s in zip(self.entries, sources, strict=True)]
        return find_lifetimes(timed, list(written), conditions)

    def joined(self, sources: list[tuple[Source, ...]], where: list[exp.Expr]) -> Held:
        """The entries joined one after the other, some of them by outer joins."""
        lifetimes = self._lifetimes(sources, list(self._on([e.unit for e in self.entries])))
        parts = [
            self._part(entry, own, lifetimes)
            for entry, own in zip(self.entries, sources, strict=True)
        ]
        held = parts[0]
        for number, (join, part) in enumerate(zip(self._joins, parts[1:], strict=True), start=1):
            held = self._join(held, part, join, number)
        conditions = tuple(where_conditions(where, self.scope_over(held.units)))
        rows = replace(held.rows, conditions=(*held.rows.conditions, *conditions))
        return Held(rows, held.units)

    def _part(
        self, entry: Entry, sources: tuple[Source, ...], lifetimes: Sequence[Lifetime]
    ) -> Held:
        names = {source.name for source in sources}
        own = tuple(one for one in lifetimes if names.issuperset(one.streams))
        rows = replace(
            entry.bound,
            sources=sources,
            conditions=() if entry.has_rows else entry.bound.conditions,
            windows=(*entry.bound.windows, *_ranges(own)),
            items=(),
            lifetimes=(*entry.bound.lifetimes, *own),
        )
        return Held(rows, (entry.unit,))

    def _join(self, held: Held, part: Held, join: exp.Join, number: int) -> Held:
        def conditions(units: Sequence[Unit]) -> list[Scalar]:
            later = [entry.unit for entry in self.entries[len(units) :]]
            scope = self.scope_over([*units, *later], before=number)
            return [*join_conditions(join, number, scope), *self._between(units)]

        side = str(join.args.get("side") or "").upper()
        if not side:
            units = (*held.units, *part.units)
            return Held(merge(held.rows, part.rows, conditions(units)), units)
        place = place_of(join, self.binder.sql)
        clause = self.tree.args.get("windows")
        wanted = wanted_by(self.tree, with_times=clause is not None)
        return OuterJoin(self.binder.builder, wanted, side, place).join(held, part, conditions)

    def _between(self, units: Sequence[Unit]) -> Iterator[Scalar]:
        """The windows between the last of some units and the others, as conditions on times."""
        entries = [(e.unit, e.bound, e.window) for e in self.entries]
        clause = self.tree.args.get("windows")
        timed = {unit.name: unit for unit in units if unit.times}
        names = [entry.unit.name for entry in self.entries if entry.unit.times]
        for window, place in written_windows(clause, entries, self.scope):
            if isinstance(window, RangeWindow):
                continue
            for bound in window.bounds(names):
                pair = (bound.later, bound.earlier)
                if units[-1].name in pair and all(name in timed for name in pair):
                    later, earlier = (unit_time(timed[name]) for name in pair)
                    yield Scalar(at_most(later, earlier, bound.limit), place)


def _ranges(lifetimes: Sequence[Lifetime]) -> Iterator[RangeWindow]:
    return (RangeWindow(one.streams[0], one.length) for one in lifetimes)
