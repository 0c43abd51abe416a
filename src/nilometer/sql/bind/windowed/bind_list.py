"""The SELECT list of a query whose answer changes, with GROUP BY, DISTINCT and ORDER BY … LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.operators.change_specs import SetFunction
from nilometer.sql.bind.bind_select import items_of
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.bind.windowed.build_nodes import NodeBuilder
from nilometer.sql.bind.windowed.group_keys import GroupKeys, aliases_of, has_time
from nilometer.sql.bind.windowed.group_rows import Grouping
from nilometer.sql.bind.windowed.order_rows import read_ordering
from nilometer.sql.bind.windowed.refusals import (
    refuse_added_names,
    require_comparable_rows,
    without_time,
)
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.places import conjuncts, place_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Node
from nilometer.sql.plan.derived import columns_of_source, derived_source
from nilometer.sql.plan.join_plan import Item
from nilometer.sql.plan.operations import set_counts
from nilometer.sql.plan.types import Types


@dataclass(frozen=True)
class ListBinder:
    """Binds what a query makes of its rows."""

    sql: str
    catalog: Catalog
    builder: NodeBuilder

    def node(self, tree: exp.Select, rows: BoundQuery, scope: Scope, is_outermost: bool) -> Node:
        """The node of a query, given the rows of its FROM and WHERE, and the names in it."""
        if is_grouped(tree, self.catalog):
            return self._grouped(tree, rows, scope, is_outermost)
        items = list(items_of(tree, ExpressionBinder(scope, "SELECT")))
        if is_outermost and self.builder.appends:
            items = without_time(items, scope)
        if is_outermost:
            refuse_added_names(items)
        binder = ExpressionBinder(scope, "ORDER BY", aliases=aliases_of(items, scope))
        ordering = read_ordering(tree, items, binder.bind, self.sql)
        hidden = () if ordering is None else ordering.hidden
        node = self._distinct(tree, self.builder.build(rows, [*items, *hidden]), hidden)
        return node if ordering is None else ordering.apply(node, self.sql)

    def _grouped(
        self, tree: exp.Select, rows: BoundQuery, scope: Scope, is_outermost: bool
    ) -> Node:
        binder = ExpressionBinder(scope, "SELECT", self.catalog.functions)
        items = list(items_of(tree, binder))
        if is_outermost:
            refuse_added_names(items)
        keys, sets = GroupKeys(self.sql, self.catalog.functions, items, scope).read(tree)
        types = Types(self.catalog, rows.sources)
        groups = Grouping(self.sql, self.catalog, keys, types, has_time=has_time(rows), sets=sets)
        in_order = replace(binder, clause="ORDER BY", aliases=aliases_of(items, scope))
        ordering = read_ordering(tree, items, in_order.bind, self.sql)
        hidden = () if ordering is None else ordering.hidden
        values = [Item(i.name, groups.rewrite(i.value)) for i in (*items, *hidden)]
        having = [groups.rewrite(c) for c in self._having(tree, binder, items)]
        node = groups.node(lambda below: self.builder.build(rows, below), values, having)
        distinct = self._distinct(tree, node, hidden)
        return distinct if ordering is None else ordering.apply(distinct, self.sql)

    def _having(
        self, tree: exp.Select, binder: ExpressionBinder, items: Sequence[Item]
    ) -> list[Scalar]:
        having = tree.args.get("having")
        if having is None:
            return []
        bound = replace(binder, clause="HAVING", aliases=aliases_of(items, binder.scope))
        return [bound.bind(one) for one in conjuncts(having.this)]

    def _distinct(self, tree: exp.Select, node: Node, hidden: Sequence[Item]) -> Node:
        distinct = tree.args.get("distinct")
        if distinct is None:
            return node
        place = place_of(distinct, self.sql)
        if hidden:
            raise SqlError(
                "DISTINCT rows can only be ordered by columns of the SELECT list",
                place=hidden[0].value.place,
                hint="add it to the SELECT list",
            )
        require_comparable_rows(node.columns, place, "DISTINCT")
        return set_counts(SetFunction.DISTINCT, (node,), node.columns)

    def ordered(self, tree: exp.Expr, node: Node) -> Node:
        """The first rows of a set operation, or of a query in brackets."""
        source = derived_source("", node, place_of(tree, self.sql))
        columns = columns_of_source(source)
        unit = FromUnit("the query", columns, (), {source.name: source.relation})
        items = [
            Item(one.name, Scalar(tree, source.place))
            for one, tree in zip(node.columns, columns.values(), strict=True)
        ]
        binder = ExpressionBinder(Scope(self.sql, (unit,), is_outermost=False), "ORDER BY")
        ordering = read_ordering(tree, items, binder.bind, self.sql)
        if ordering is None:
            return node
        below = self.builder.compute(source, (), [*items, *ordering.hidden])
        return ordering.apply(below, self.sql)


def is_grouped(tree: exp.Select, catalog: Catalog) -> bool:
    """Whether a query makes groups of its rows."""
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        return True
    return any(True for item in tree.expressions for _ in aggregates_in(item, catalog.functions))
