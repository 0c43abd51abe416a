"""Subqueries about rows: which rows have partners, and the values that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import Place, SqlError, UnknownNameError
from nilometer.model.expressions import Argument, Constant
from nilometer.operators.change_specs import AggregateFunction, SetFunction
from nilometer.sql.bind.bind_select import items_of
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.from_entry import Deriver
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.bind.windowed.build_nodes import NodeBuilder
from nilometer.sql.bind.windowed.exists import ExistsTest
from nilometer.sql.bind.windowed.group_rows import GROUPS, Grouping, key_item
from nilometer.sql.bind.windowed.held_units import HELD, HeldUnits, NeededColumns, merge
from nilometer.sql.bind.windowed.keyed_rows import KeyedRows, by_values, equal, unknown
from nilometer.sql.bind.windowed.outer_joins import OuterJoin
from nilometer.sql.bind.windowed.refusals import require_comparable_rows
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.expressions.scalars import ColumnRef, ResolvedColumn, Scalar, column, rebuild
from nilometer.sql.parse.places import conjuncts, place_of
from nilometer.sql.parse.put_rows import reads_one_row
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Column, Node
from nilometer.sql.plan.derived import columns_of_source, derived_source
from nilometer.sql.plan.join_plan import Item
from nilometer.sql.plan.operations import compute, set_counts, union_all
from nilometer.sql.plan.types import Types
from nilometer.sql.rewrite.modes import unwrap
from nilometer.sql.rewrite.subqueries import SubqueryColumn, SubqueryUse

Named = Mapping[str, exp.CTE]
_AROUND: Final = "the rows around"
_INNER: Final = "the subquery"
_COUNTS: Final = (AggregateFunction.COUNT_ROWS, AggregateFunction.COUNT)


@dataclass(frozen=True)
class OuterRows:
    """The outer rows of a subquery, and the names that it can use of them."""

    held: HeldUnits
    scope: Scope
    wanted: NeededColumns


@dataclass(frozen=True)
class InnerRows:
    """The rows of a subquery that uses outer names, and its own names.

    Where it has further subqueries, its rows are already those of a join with the outer rows,
    whose units are then included.
    """

    rows: BoundQuery
    scope: Scope
    around: tuple[FromUnit, ...] | None = None


@dataclass(frozen=True)
class SubqueryBinder:
    """Evaluates subqueries for rows; `bind` returns the rows of one that uses outer names."""

    sql: str
    builder: NodeBuilder
    deriver: Deriver
    bind: Callable[[exp.Select, Named, OuterRows], InnerRows]
    wanted: NeededColumns
    named: Named

    def choose(self, held: HeldUnits, test: ExistsTest, scope: Scope) -> HeldUnits:
        """The rows that pass a test."""
        place = place_of(test.tree, self.sql)
        node, partners = self._partners(held, test, scope)
        function = SetFunction.WITHOUT if test.negated else SetFunction.WITH
        passed = set_counts(function, (node, partners), node.columns)
        return self.wanted.derive(held.units, passed, place)

    def add(self, held: HeldUnits, subquery: SubqueryColumn, scope: Scope) -> HeldUnits:
        """The rows, each with the value of a subquery."""
        if subquery.args["asked"] is SubqueryUse.VALUE:
            return self._with_value(held, subquery, scope)
        args = subquery.args
        test = ExistsTest(subquery, args["query"], False, args["asked"], args.get("value"))
        node, partners = self._partners(held, test, scope)
        columns = (*node.columns, Column(f"{subquery.name}.{subquery.name}", pa.bool_()))
        texts = tuple(one.name for one in columns)
        own = tuple(Argument(place) for place in range(len(node.columns)))
        parts = []
        for function, answer in ((SetFunction.WITH, True), (SetFunction.WITHOUT, False)):
            chosen = set_counts(function, (node, partners), node.columns)
            parts.append(compute(chosen, None, (*own, Constant(answer)), columns, texts))
        unit = _unit(subquery.name, exp.Null(), {})
        both = union_all(parts, columns)
        return self.wanted.derive((*held.units, unit), both, place_of(subquery, self.sql))

    def _partners(self, held: HeldUnits, test: ExistsTest, scope: Scope) -> tuple[Node, Node]:
        """The rows as a node, and those of them that have partners, once for each."""
        place = place_of(test.tree, self.sql)
        node = self.builder.build(held.rows, self.wanted.items(held.units))
        require_comparable_rows(node.columns, place, "a query with EXISTS")
        own = self.wanted.derive(held.units, node, place, _around(scope))
        around = OuterRows(own, replace(scope, units=own.units), self.wanted)
        parts = []
        for inner in self._inner(test, around):
            if inner.around is None:
                rows, units = merge(own.rows, inner.rows, ()), own.units
            else:
                rows, units = inner.rows, inner.around
            parts.append(self.builder.build(rows, self.wanted.items(units)))
        return node, union_all(parts, node.columns) if len(parts) > 1 else parts[0]

    def _inner(self, test: ExistsTest, around: OuterRows) -> list[InnerRows]:
        """The rows of the query inside EXISTS, with its conditions on outer rows.

        Several, if it has to be tested in several ways, any of which may have rows.
        """
        query = unwrap(test.query)
        if isinstance(query, exp.Select) and query.args.get("distinct") is not None:
            query = query.copy()
            query.set("distinct", None)
        if self.deriver.is_plain(query):
            return self._correlated(test, query, around)
        try:
            node = self.deriver.derive(query, self.named)
        except UnknownNameError as error:
            if self.deriver.has_plain_rows(query):
                return self._correlated(test, query, around)
            hint = (
                "inside EXISTS, only a plain SELECT … FROM … WHERE can use names of the "
                "enclosing query"
            )
            raise UnknownNameError(
                error.message, place=error.place, detail=error.detail, hint=error.hint or hint
            ) from None
        source = derived_source(_INNER, node, place_of(test.tree, self.sql))
        rows = BoundQuery((source,), (), (), (), None)
        inner = InnerRows(rows, around.scope)
        return self._compared(test, around, inner, list(columns_of_source(source).values()))

    def _correlated(self, test: ExistsTest, query: exp.Expr, around: OuterRows) -> list[InnerRows]:
        assert isinstance(query, exp.Select)
        inner = self.bind(query, self.named, around)
        if test.value is None:
            return [inner]
        items = items_of(query, ExpressionBinder(inner.scope, "SELECT"))
        return self._compared(test, around, inner, [item.value.tree for item in items])

    def _compared(
        self, test: ExistsTest, around: OuterRows, inner: InnerRows, columns: Sequence[exp.Expr]
    ) -> list[InnerRows]:
        """The rows for which equality to the value before IN is true or unknown."""
        if test.value is None:
            return [inner]
        place = place_of(test.tree, self.sql)
        value = test.value.unnest()
        values = value.expressions if isinstance(value, exp.Tuple) else [value]
        if len(columns) != len(values):
            compared = "one column" if len(values) == 1 else f"{len(values)} columns"
            raise SqlError(
                f"IN compares with {compared}, got {len(columns)}",
                place=place,
                hint=f"select {compared} in the subquery",
            )
        scope = around.scope
        if inner.around is not None:
            scope = replace(scope, units=inner.around)
        bound = [ExpressionBinder(scope, "WHERE").bind(one).tree for one in values]
        pairs = list(zip(bound, columns, strict=True))
        alternatives = []
        for tree in [equal(pairs)] if test.asked is SubqueryUse.EQUAL else unknown(pairs):
            equalities = (Scalar(one, place) for one in conjuncts(tree))
            rows = replace(inner.rows, conditions=(*inner.rows.conditions, *equalities))
            alternatives.append(replace(inner, rows=rows))
        return alternatives

    def _with_value(self, held: HeldUnits, subquery: SubqueryColumn, scope: Scope) -> HeldUnits:
        """The rows, each with the value of a subquery that has at most one row."""
        query, place = unwrap(subquery.args["query"]), place_of(subquery, self.sql)
        is_one = self._has_one_row(query)
        if not is_one and not _has_one_at_most(query):
            raise SqlError(
                "a scalar subquery may return several rows",
                place=place,
                hint="aggregate them, SELECT MAX(x) FROM …, or keep the first: ORDER BY … LIMIT 1",
            )
        try:
            node = self.deriver.derive(query, self.named)
        except UnknownNameError:
            if not is_one:
                raise
            return self._with_correlated(held, subquery, query, scope)
        _require_one_column(len(node.columns), place)
        source = derived_source(subquery.name, node, place)
        (tree,) = columns_of_source(source).values()
        unit = _unit(subquery.name, tree, {source.name: source.relation})
        part = HeldUnits(BoundQuery((source,), (), (), (), None), (unit,))
        if is_one:
            return HeldUnits(merge(held.rows, part.rows, ()), (*held.units, unit))
        return OuterJoin(self.builder, self.wanted, "LEFT", place).join(held, part, lambda _: ())

    def _with_correlated(
        self, held: HeldUnits, subquery: SubqueryColumn, query: exp.Expr, scope: Scope
    ) -> HeldUnits:
        """The rows with the values of the subquery's groups, one group for each key."""
        assert isinstance(query, exp.Select)
        place, name = place_of(subquery, self.sql), _around(scope)
        node = self.builder.build(held.rows, self.wanted.items(held.units))
        require_comparable_rows(node.columns, place, "a query with a scalar subquery")
        own = self.wanted.derive(held.units, node, place, name)
        around = OuterRows(own, replace(scope, units=own.units), self.wanted)
        inner = self.bind(query, self.named, around)
        functions = self.builder.catalog.functions
        items = list(items_of(query, ExpressionBinder(inner.scope, "SELECT", functions)))
        _require_one_column(len(items), place)
        value = items[0].value
        pairs = [self._pair(c, name) for c in inner.rows.conditions if name in c.streams]
        if inner.around is not None:
            raise SqlError(
                "a correlated scalar subquery cannot contain further subqueries",
                place=place,
                hint="join with the stream instead",
            )
        equal = [one for one in pairs if one is not None]
        if len(equal) == len(pairs) and name not in value.streams:
            free = tuple(one for one in inner.rows.conditions if name not in one.streams)
            keyed = KeyedRows(
                replace(inner.rows, conditions=free),
                tuple(inside for _, inside in equal),
                tuple(outside for outside, _ in equal),
            )
        else:
            keyed = by_values(inner.rows, value, derived_source(name, node, place))
        part, meaning = self._groups(keyed, value, subquery)
        everything = replace(self.wanted, has_star=True)
        joined = OuterJoin(self.builder, everything, "LEFT", place).join(
            own, part, lambda units: keyed.conditions(units, place)
        )
        shown = meaning(joined.units[-1])
        return HeldUnits(joined.rows, (*joined.units[:-1], shown))

    def _groups(
        self, keyed: KeyedRows, value: Scalar, subquery: SubqueryColumn
    ) -> tuple[HeldUnits, Callable[[FromUnit], FromUnit]]:
        """The groups of a subquery's rows, and how its value is computed from their output."""
        place = place_of(subquery, self.sql)
        keys = {key_item(one).name: key_item(one) for one in keyed.keys}
        types = Types(self.builder.catalog, keyed.rows.sources)
        groups = Grouping(self.sql, self.builder.catalog, list(keys.values()), types)
        tree = groups.rewrite(value).tree
        for one in groups.calls:
            if one.call.function in (AggregateFunction.LIST, AggregateFunction.SET):
                raise SqlError(
                    f"{one.written} is not supported as the value of a correlated subquery",
                    place=one.place,
                    hint="join with a subquery that has GROUP BY",
                )
        counts = {one.text for one in groups.calls if one.call.function in _COUNTS}
        values = [groups.rewrite(one) for one in keyed.keys]
        values += [Scalar(column(ColumnRef(GROUPS, one.text)), place) for one in groups.calls]
        items = [Item(str(number), one) for number, one in enumerate(values)]
        node = groups.node(lambda below: self.builder.build(keyed.rows, below), items, [])
        source = derived_source(subquery.name, node, place)
        unit = FromUnit(
            subquery.name, columns_of_source(source), (), {source.name: source.relation}
        )
        places = {str(one): str(number) for number, one in enumerate(values)}

        def meaning(joined: FromUnit) -> FromUnit:
            def replaced(node: exp.Expr) -> exp.Expr:
                if not isinstance(node, ResolvedColumn):
                    return rebuild(node, replaced)
                shown = joined.columns[places[str(Scalar(node, place))]]
                if not isinstance(node.ref, ColumnRef) or node.ref.column not in counts:
                    return shown
                return exp.Coalesce(this=shown, expressions=[exp.Literal.number(0)])

            columns = {subquery.name: exp.Paren(this=replaced(tree))}
            return replace(joined, columns=columns, hidden=frozenset(columns))

        return HeldUnits(BoundQuery((source,), (), (), (), None), (unit,)), meaning

    def _pair(self, condition: Scalar, around: str) -> tuple[exp.Expr, Scalar] | None:
        """The two sides of an equality with an outer row: outer, and inner."""
        tree = condition.tree.unnest()
        if isinstance(tree, exp.EQ):
            left, right = (Scalar(one, condition.place) for one in (tree.left, tree.right))
            for outside, inside in ((left, right), (right, left)):
                if outside.streams == {around} and inside.streams and around not in inside.streams:
                    return outside.tree, inside
        return None

    def _has_one_row(self, query: exp.Expr) -> bool:
        """Whether a query always has exactly one row: aggregates without GROUP BY."""
        if not isinstance(query, exp.Select):
            return False
        if any(query.args.get(one) for one in ("group", "having", "distinct", "limit", "offset")):
            return False
        functions = self.builder.catalog.functions
        return any(True for item in query.expressions for _ in aggregates_in(item, functions))


def _require_one_column(count: int, place: Place) -> None:
    if count != 1:
        raise SqlError(f"a scalar subquery must return one column, got {count}", place=place)


def _has_one_at_most(query: exp.Expr) -> bool:
    if isinstance(query, exp.Select) and reads_one_row(query):
        return True
    limit = query.args.get("limit")
    number = None if limit is None else limit.args.get("expression")
    return isinstance(number, exp.Literal) and number.name in ("0", "1")


def _around(scope: Scope) -> str:
    """A name for the outer rows of a subquery, unique for nested subqueries."""
    depth, outer = 0, scope.outer
    while outer is not None:
        depth, outer = depth + 1, outer.outer
    return HELD if not depth else f"{_AROUND} ({depth + 1})"


def _unit(name: str, tree: exp.Expr, relations: Mapping[str, object]) -> FromUnit:
    """The value of a subquery, under a name that no star includes."""
    return FromUnit(name, {name: tree}, (), relations, hidden=frozenset([name]))  # type: ignore[arg-type]
