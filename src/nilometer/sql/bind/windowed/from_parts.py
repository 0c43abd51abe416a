"""The entries of one FROM, joined: all at once, or one after another for outer joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.model.windows import RangeWindow
from nilometer.sql.bind.bind_select import join_conditions, scope_of, where_conditions
from nilometer.sql.bind.bind_windows import bind_windows, written_windows
from nilometer.sql.bind.from_entry import BoundEntry
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.bind.windowed.build_nodes import NodeBuilder, at_most
from nilometer.sql.bind.windowed.exists import ExistsTest, read_exists
from nilometer.sql.bind.windowed.held_units import HeldUnits, merge, unit_time, wanted_by
from nilometer.sql.bind.windowed.lifetimes import find_lifetimes, timed_entry
from nilometer.sql.bind.windowed.outer_joins import OuterJoin
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.places import conjuncts, place_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Lifetime
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.rewrite.subqueries import names_subquery


@dataclass(frozen=True)
class FromParts:
    """The entries of one FROM, to be joined."""

    sql: str
    builder: NodeBuilder
    tree: exp.Select
    entries: list[BoundEntry]
    outer: Scope | None

    @property
    def scope(self) -> Scope:
        return self.scope_over([entry.unit for entry in self.entries])

    def scope_over(self, units: Sequence[FromUnit], before: int | None = None) -> Scope:
        """The names of the query, where its units are held by another node.

        Columns merged by USING count, if a number is given, only up to the join before it.
        """
        scope = scope_of(self.tree, units, self.sql, is_outermost=False)
        merged = self._merged(scope, len(units) if before is None else before)
        return replace(scope, outer=self.outer, merged=merged)

    def _merged(self, scope: Scope, before: int) -> dict[str, exp.Expr]:
        """Columns that USING names after RIGHT or FULL JOIN: those of either side."""
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

    def where(self) -> tuple[list[exp.Expr], list[ExistsTest], list[exp.Expr]]:
        """The conditions of WHERE, the EXISTS tests, and the conditions tested last.

        The last ones use the values of subqueries.
        """
        where = self.tree.args.get("where")
        plain, tests, later = [], [], []
        for condition in conjuncts(where.this) if where is not None else ():
            exists = list(read_exists(condition))
            tests += exists
            if names_subquery(condition):
                later.append(condition)
            elif not exists:
                plain.append(condition)
        return plain, tests, later

    def listed(self, sources: list[tuple[Source, ...]], where: list[exp.Expr]) -> HeldUnits:
        """All entries joined."""
        scope, clause = self.scope, self.tree.args.get("windows")
        conditions = [*self._on(scope.units), *where_conditions(where, scope)]
        lifetimes = self._lifetimes(sources, conditions)
        units = [(e.unit, e.bound, e.window) for e in self.entries]
        windows = bind_windows(clause, units, scope, with_ranges=False)
        inner = [c for e in self.entries if not e.has_rows for c in e.bound.conditions]
        rows = BoundQuery(
            tuple(one for own in sources for one in own),
            (*windows.windows, *_ranges(lifetimes)),
            (*inner, *conditions, *windows.conditions),
            (),
            None if clause is None else place_of(clause, self.sql),
            (*(one for e in self.entries for one in e.bound.lifetimes), *lifetimes),
        )
        return HeldUnits(rows, tuple(entry.unit for entry in self.entries))

    def _on(self, units: Sequence[FromUnit]) -> Iterator[Scalar]:
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

    def joined(self, sources: list[tuple[Source, ...]], where: list[exp.Expr]) -> HeldUnits:
        """The entries joined one after another, some of them by outer joins."""
        lifetimes = self._lifetimes(sources, list(self._on([e.unit for e in self.entries])))
        parts = [
            self._part(entry, own, lifetimes)
            for entry, own in zip(self.entries, sources, strict=True)
        ]
        early, where = self._asked_first(where)
        rows = parts[0].rows
        held = HeldUnits(replace(rows, conditions=(*rows.conditions, *early)), parts[0].units)
        for number, (join, part) in enumerate(zip(self._joins, parts[1:], strict=True), start=1):
            self._refuse_late_items(number)
            held = self._join(held, part, join, number)
        conditions = tuple(where_conditions(where, self.scope_over(held.units)))
        rows = replace(held.rows, conditions=(*held.rows.conditions, *conditions))
        return HeldUnits(rows, held.units)

    def _refuse_late_items(self, number: int) -> None:
        """Refuse items of an array after a join that has changed the array's rows."""
        entry = self.entries[number]
        if not entry.bound.sources and any(join.side for join in self._joins[: number - 1]):
            raise SqlError(
                "UNNEST must precede outer joins",
                place=entry.place,
                hint="write FROM A, UNNEST(A.x) AS u (item) LEFT JOIN …",
            )

    def _asked_first(self, where: list[exp.Expr]) -> tuple[list[Scalar], list[exp.Expr]]:
        """The conditions that rows of the first entry must pass anyway, and the others.

        A left join keeps all rows of its left side, so they may be selected before it.
        """
        if any(
            str(join.args.get("side") or "").upper() not in ("", "LEFT") for join in self._joins
        ):
            return [], where
        first = {source.name for source in self.entries[0].bound.sources}
        early: list[Scalar] = []
        later: list[exp.Expr] = []
        for tree in where:
            (bound,) = where_conditions([tree], self.scope)
            if bound.streams and first.issuperset(bound.streams):
                early.append(bound)
            else:
                later.append(tree)
        return early, later

    def _part(
        self, entry: BoundEntry, sources: tuple[Source, ...], lifetimes: Sequence[Lifetime]
    ) -> HeldUnits:
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
        return HeldUnits(rows, (entry.unit,))

    def _join(self, held: HeldUnits, part: HeldUnits, join: exp.Join, number: int) -> HeldUnits:
        def conditions(units: Sequence[FromUnit]) -> list[Scalar]:
            later = [entry.unit for entry in self.entries[len(units) :]]
            scope = self.scope_over([*units, *later], before=number)
            return [*join_conditions(join, number, scope), *self._between(units)]

        side = str(join.args.get("side") or "").upper()
        if not side:
            units = (*held.units, *part.units)
            return HeldUnits(merge(held.rows, part.rows, conditions(units)), units)
        place = place_of(join, self.sql)
        clause = self.tree.args.get("windows")
        wanted = wanted_by(self.tree, with_times=clause is not None)
        return OuterJoin(self.builder, wanted, side, place).join(held, part, conditions)

    def _between(self, units: Sequence[FromUnit]) -> Iterator[Scalar]:
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
