"""The keys of GROUP BY: expressions, columns of the list, or their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import Scope
from nilometer.sql.bind.windowed.group_rows import key_item
from nilometer.sql.bind.windowed.grouping_sets import GroupingSets, read_sets
from nilometer.sql.bind.windowed.order_rows import own_column
from nilometer.sql.catalog import UserFunction
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.places import place_of, text_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.join_plan import Item


@dataclass(frozen=True)
class GroupKeys:
    """Reads the keys of a query with this list, over the columns of these sources."""

    sql: str
    functions: Mapping[str, UserFunction]
    items: Sequence[Item]
    scope: Scope

    def read(self, tree: exp.Select) -> tuple[list[Item], GroupingSets | None]:
        """The keys, and which of them belong to each set if there are several sets."""
        group = tree.args.get("group")
        if group is None:
            return [], None
        if group.args.get("all"):
            sets = [[item.value for item in self.items if not self._aggregates(item)]]
        else:
            sets = [[self._key(key) for key in one] for one in read_sets(group, self.sql)]
        named = [{item.name: item for item in map(key_item, one)} for one in sets]
        keys = {name: item for one in named for name, item in one.items()}
        if len(named) == 1:
            return list(keys.values()), None
        several = GroupingSets(tuple(map(frozenset, named)))
        return [*keys.values(), several.key], several

    def _aggregates(self, item: Item) -> bool:
        return any(True for _ in aggregates_in(item.value.tree, self.functions))

    def _key(self, key: exp.Expr) -> Scalar:
        is_column = isinstance(key, exp.Column) and key.name.lower() in _known(self.scope)
        names = [item.name for item in self.items]
        place = None if is_column else own_column(key, names, "GROUP BY", self.sql)
        if place is None:
            return ExpressionBinder(self.scope, "GROUP BY").bind(key)
        for call in aggregates_in(self.items[place].value.tree, self.functions):
            raise SqlError(
                "GROUP BY cannot contain an aggregate",
                place=place_of(key, self.sql),
                detail=f"it stands for {text_of(call, self.sql)}",
                hint="group by columns of the streams",
            )
        return self.items[place].value


def has_time(rows: BoundQuery) -> bool:
    """Whether rows have a time of their own, from streams or windows over them."""
    if len(rows.sources) == 1:
        clause = rows.sources[0].in_windows
        return rows.sources[0].node is None if clause is None else has_time(clause.query)
    return all(source.is_block for source in rows.sources)


def _known(scope: Scope) -> set[str]:
    """The names of all columns of FROM, in lower case."""
    return {name.lower() for unit in scope.units for name in unit.columns}


def aliases_of(items: Sequence[Item], scope: Scope) -> dict[str, exp.Expr]:
    """Columns of the list that HAVING and ORDER BY may use: columns of FROM take precedence."""
    known = _known(scope)
    return {i.name.lower(): i.value.tree for i in items if i.name.lower() not in known}
