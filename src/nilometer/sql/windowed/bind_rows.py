"""What FROM and WHERE of a changing query hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import SqlError, UnknownNameError
from nilometer.operators.change_specs import SetFunction
from nilometer.sql.bind_from import FromBinder
from nilometer.sql.bind_select import items_of
from nilometer.sql.bound_query import BoundQuery, Deriver
from nilometer.sql.changes_plan import Counted, Node
from nilometer.sql.derived import columns_of_source, derived_source
from nilometer.sql.expression_binder import ExpressionBinder
from nilometer.sql.modes import unwrap
from nilometer.sql.named_queries import named_queries
from nilometer.sql.refuse import refuse_query
from nilometer.sql.scalars import Scalar, place_of
from nilometer.sql.scope import Scope
from nilometer.sql.windowed.build_nodes import NodeBuilder
from nilometer.sql.windowed.exists import ExistsTest
from nilometer.sql.windowed.from_parts import FromParts
from nilometer.sql.windowed.held_units import Held, merge, wanted_by
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
        parts = FromParts(self.sql, self.builder, tree, list(binder.entries(tree)), outer)
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
