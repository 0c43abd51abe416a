"""GROUP BY: keys and arguments are computed below, test and list from the groups' output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import Place, PredicateError, SqlError, SqlTypeError, UnavailableError
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.type_of import type_of
from nilometer.model.expressions import Argument
from nilometer.operators.change_specs import AggregateCall
from nilometer.sql.bind.windowed.grouping_sets import SET_NUMBER, GroupingSets
from nilometer.sql.bind.windowed.refusals import require_comparable
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.expressions.aggregate_calls import (
    is_aggregate,
    no_value_of_group,
    read_aggregate,
)
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.expressions.compound_aggregates import simplify_aggregate
from nilometer.sql.expressions.scalars import (
    RESULT_TIME,
    ColumnRef,
    Ref,
    ResolvedColumn,
    Scalar,
    column,
    columns_of,
    rebuild,
    show,
)
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import is_placed, place_of, put_at
from nilometer.sql.plan.aggregated import aggregate
from nilometer.sql.plan.changes_plan import Column, Node, Operation
from nilometer.sql.plan.join_plan import Item, Source
from nilometer.sql.plan.row_expressions import RowExpressions
from nilometer.sql.plan.types import Types

GROUPS = ""
"""The name of the groups' output, in errors and plans."""


@dataclass(frozen=True)
class _Call:
    """An aggregate in the statement; its argument is one of the columns after the keys."""

    text: str
    call: AggregateCall
    place: Place
    written: str


@dataclass
class Grouping:
    """The keys of groups, and the aggregates that a statement uses, as they are found."""

    sql: str
    catalog: Catalog
    keys: list[Item]
    types: Types
    """Of expressions over the rows below."""
    arguments: list[Item] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    has_time: bool = True
    """Whether rows have a time by which they are ordered."""
    sets: GroupingSets | None = None
    """The sets of keys, if there are several."""

    def rewrite(self, scalar: Scalar) -> Scalar:
        """An expression over the keys and aggregates of groups."""
        return Scalar(self._rewrite(scalar.tree), scalar.place)

    def _rewrite(self, tree: exp.Expr) -> exp.Expr:
        if isinstance(tree, exp.Grouping | exp.GroupingId):
            return self._grouping(tree)
        if is_aggregate(tree, self.catalog.functions):
            simpler = simplify_aggregate(tree, self.sql)
            if simpler is not tree:
                return self._rewrite(simpler)
            return self._aggregate(tree)
        if any(is_aggregate(node, self.catalog.functions) for node in tree.walk()):
            return rebuild(tree, self._rewrite)
        if tree.find(ResolvedColumn) is None:
            return tree
        over_keys = self._over_keys(tree)
        if isinstance(tree, exp.If) or self._is_available(over_keys):
            return over_keys
        self.keys.append(Item(_text(tree), Scalar(tree, place_of(tree, self.sql))))
        return self._over_keys(tree)

    def _grouping(self, tree: exp.Func) -> exp.Expr:
        """GROUPING(k), GROUPING_ID(a, b): which keys are left out in the group of a row."""
        known = [key.name for key in self.keys if key.name != SET_NUMBER]
        names = [_text(one) for one in tree.expressions] or known
        unknown = next((name for name in names if name not in known), None)
        place = place_of(tree, self.sql)
        if self.sets is None or unknown is not None:
            what = "GROUPING SETS, ROLLUP or CUBE" if self.sets is None else "GROUP BY"
            raise SqlError(
                f"{tree.sql_name()} needs keys of {what}",
                place=place,
                detail=None if unknown is None else f"{unknown} is not one of its keys",
            )
        return put_at(exp.Paren(this=self.sets.left_out(names, GROUPS)), place)

    def _over_keys(self, tree: exp.Expr) -> exp.Expr:
        """An expression without aggregates, its parts that are keys replaced."""
        text = _text(tree)
        if any(text == key.name for key in self.keys):
            return self._result(tree, text)
        if isinstance(tree, ResolvedColumn):
            name = tree.ref.column if isinstance(tree.ref, ColumnRef) else str(tree.ref)
            raise no_value_of_group(name, place_of(tree, self.sql))
        return rebuild(tree, self._over_keys)

    def _is_available(self, tree: exp.Expr) -> bool:
        """Whether an expression over groups can be evaluated here, for values of their types."""
        names = [key.name for key in self.keys]

        def argument(ref: Ref) -> Argument:
            assert isinstance(ref, ColumnRef)
            return Argument(names.index(ref.column), ref.fields)

        known = self.catalog
        kinds = [self.types.of(key.value) or pa.null() for key in self.keys]
        try:
            type_of(
                SubsetCompiler(self.sql, argument, known.functions, known.zone).compile(tree), kinds
            )
        except (NotInSubsetError, UnavailableError):
            return False
        except PredicateError:  # whose position is added later
            return True
        return True

    def _aggregate(self, tree: exp.Expr) -> exp.Expr:
        """The result of a call; calls that compute the same are shared, whatever their text."""
        read = read_aggregate(tree, self.sql)
        place = None
        if read.argument is not None:
            self._require_time(read.argument, tree)
            scalar = Scalar(read.argument, place_of(tree, self.sql))
            place = self._argument(Item(_text(read.argument), scalar))
        call = read.call(place)
        name = next((one.text for one in self.calls if one.call == call), None)
        if name is None:
            inner = tree.this if isinstance(tree, exp.Filter) else tree
            assert isinstance(inner, exp.Func)
            named = written(inner) if is_placed(inner) else str(read.function)
            name = self._unused(_text(tree))
            self.calls.append(_Call(name, call, place_of(tree, self.sql), named))
        return self._result(tree, name)

    def _unused(self, text: str) -> str:
        """A unique name for a call: its text does not distinguish orders and fractions."""
        used = {one.text for one in self.calls}
        return text if text not in used else f"{text} as call {len(used) + 1}"

    def _require_time(self, argument: exp.Expr, tree: exp.Expr) -> None:
        """Refuse an order by time over the rows of an answer, which have no time."""
        if self.has_time or RESULT_TIME not in columns_of(argument):
            return
        raise SqlError(
            "rows of a changing answer have no time to order them by",
            place=place_of(tree, self.sql),
            hint="give an order: max_by(x, y), array_agg(x ORDER BY y)",
        )

    def _result(self, tree: exp.Expr, text: str) -> exp.Expr:
        """A reference to a key or a result of a group in an expression."""
        return put_at(column(ColumnRef(GROUPS, text)), place_of(tree, self.sql))

    def _argument(self, item: Item) -> int:
        names = [one.name for one in self.arguments]
        if item.name not in names:
            self.arguments.append(item)
            return len(names)
        return names.index(item.name)

    def node(
        self,
        build: Callable[[Sequence[Item]], Node],
        items: Sequence[Item],
        having: Sequence[Scalar],
    ) -> Operation:
        """The node, once all expressions have been rewritten; `build` returns the input."""
        below = build([*self.keys, *self.arguments])
        if self.sets is not None:
            below = self.sets.expand(below, self.keys)
        for key, one in zip(self.keys, below.columns, strict=False):
            require_comparable(one.kind, key.value.place, "a key of GROUP BY")
        calls = [self._placed(one.call) for one in self.calls]
        kinds = [one.kind for one in below.columns]
        results = [
            Column(one.text, self._type(one, call, kinds))
            for one, call in zip(self.calls, calls, strict=True)
        ]
        rows = RowExpressions(
            self.sql, self.catalog, _groups([*below.columns[: len(self.keys)], *results])
        )
        test = rows.test(having)
        values = [rows.value(item.value) for item in items]
        texts = [" AND ".join(map(str, having))] if having else []
        return aggregate(
            below,
            len(self.keys),
            calls,
            test,
            [expression for expression, _ in values],
            [Column(i.name, kind) for i, (_, kind) in zip(items, values, strict=True)],
            (*texts, *(str(item.value) for item in items)),
        )

    def _placed(self, call: AggregateCall) -> AggregateCall:
        """The call with the position of its argument after all keys."""
        return call if call.column is None else replace(call, column=len(self.keys) + call.column)

    def _type(self, one: _Call, call: AggregateCall, kinds: Sequence[pa.DataType]) -> pa.DataType:
        try:
            return aggregate_type(call, kinds, one.written)
        except PredicateError as error:
            raise SqlTypeError.at(one.place, error) from None


def _groups(columns: Sequence[Column]) -> Source:
    """The groups' output as a source."""
    names, kinds = [c.name for c in columns], [c.kind for c in columns]
    relation = Relation(GROUPS, tuple(names), tuple(kinds), is_table=True)
    return Source(GROUPS, relation, Place("", 0, 0), is_held=True)


def key_item(scalar: Scalar) -> Item:
    """A key of groups, named by its text."""
    return Item(_text(scalar.tree), scalar)


def _text(tree: exp.Expr) -> str:
    return show(tree.unnest())
