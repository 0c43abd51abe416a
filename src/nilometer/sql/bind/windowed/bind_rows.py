"""The rows of FROM and WHERE of a changing query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import AmbiguousNameError
from nilometer.sql.bind.bind_from import FromBinder
from nilometer.sql.bind.bind_select import where_conditions
from nilometer.sql.bind.from_entry import Deriver
from nilometer.sql.bind.refuse import refuse_query
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.bind.windowed.build_nodes import NodeBuilder
from nilometer.sql.bind.windowed.from_parts import FromParts
from nilometer.sql.bind.windowed.held_units import HeldUnits, merge, wanted_by
from nilometer.sql.bind.windowed.subquery_rows import InnerRows, OuterRows, SubqueryBinder
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.rewrite.subqueries import subquery_columns

Named = Mapping[str, exp.CTE]


@dataclass(frozen=True)
class RowsBinder:
    """Binds FROM and WHERE; `query` flattens subqueries, `deriver` makes nodes of others."""

    sql: str
    builder: NodeBuilder
    query: Callable[[exp.Expr, str | None, Named], BoundQuery]
    deriver: Deriver

    def bind(self, tree: exp.Select, prefix: str | None, named: Named) -> tuple[BoundQuery, Scope]:
        """The rows, and the names that the rest of the query can use."""
        inner = self._bind(tree, prefix, named, None)
        return inner.rows, inner.scope

    def _bind_inner(self, tree: exp.Select, named: Named, around: OuterRows) -> InnerRows:
        """The rows of a query inside an expression, which may use names around it."""
        refuse_query(tree, self.sql)
        return self._bind(tree, None, {**named, **named_queries(tree, self.sql)}, around)

    def _bind(
        self, tree: exp.Select, prefix: str | None, named: Named, around: OuterRows | None
    ) -> InnerRows:
        binder = FromBinder(self.sql, self.builder.catalog, prefix, named, self.query, self.deriver)
        outer = None if around is None else around.scope
        parts = FromParts(self.sql, self.builder, tree, list(binder.entries(tree)), outer)
        sources = [tuple(binder.sources(e, parts.scope)) for e in parts.entries]
        plain, tests, later = parts.where()
        joins = tree.args.get("joins") or ()
        if any(join.args.get("side") for join in joins):
            held = parts.joined(sources, plain)
        else:
            held = parts.listed(sources, plain)
        columns = subquery_columns(tree)
        if not tests and not columns:
            return InnerRows(held.rows, parts.scope_over(held.units))
        wanted, before = wanted_by(tree, with_times=False), 0
        if around is not None:
            self._refuse_same_names(around.held.units, parts)
            wanted, before = wanted.and_also(around.wanted), len(around.held.units)
            rows = merge(around.held.rows, held.rows, ())
            held = HeldUnits(rows, (*around.held.units, *held.units))

        def scope_now() -> Scope:
            scope = parts.scope_over(held.units[before:])
            if around is None:
                return scope
            return replace(scope, outer=replace(around.scope, units=held.units[:before]))

        asking = SubqueryBinder(
            self.sql, self.builder, self.deriver, self._bind_inner, wanted, named
        )
        for test in tests:
            held = asking.choose(held, test, scope_now())
        for one in columns:
            held = asking.add(held, one, scope_now())
        scope = scope_now()
        conditions = (*held.rows.conditions, *where_conditions(later, scope))
        rows = replace(held.rows, conditions=conditions)
        return InnerRows(rows, scope, held.units[:before] if around is not None else None)

    def _refuse_same_names(self, around: Sequence[FromUnit], parts: FromParts) -> None:
        """Refuse a name with two meanings in the conditions on one row."""
        taken = {unit.name.lower() for unit in around}
        for entry in parts.entries:
            if entry.unit.name.lower() in taken:
                raise AmbiguousNameError(
                    f"{entry.unit.name} is also a name in the enclosing query",
                    place=entry.place,
                    hint=f"give it another name: {entry.unit.origin or '(SELECT …)'} AS other",
                )
