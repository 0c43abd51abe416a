"""The nodes of a windowed plan as specs of the operators that run them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.model.expressions import Argument, Expression
from nilometer.operators.block import BlockSpec
from nilometer.operators.change_join import ChangeJoinSpec
from nilometer.operators.change_operator import ChangeSpec
from nilometer.operators.last_rows import LastRowsSpec
from nilometer.sql.expressions.compile_scalar import SubsetCompiler
from nilometer.sql.expressions.scalars import (
    RESULT_TIME,
    ColumnRef,
    ComputedRef,
    Ref,
    ResolvedColumn,
    column,
    rebuild,
    spell_own,
)
from nilometer.sql.physical.join_places import (
    build_join,
    carried_schema,
    layouts,
    residual,
    rows_window,
)
from nilometer.sql.plan.carried_columns import leaves_as, output_names
from nilometer.sql.plan.changes_plan import (
    Block,
    Combine,
    LastRows,
    Operation,
    is_static,
    types_of,
)
from nilometer.sql.plan.join_plan import Carried, Item, JoinPlan, Source
from nilometer.sql.plan.types import TIMESTAMP, Types


@dataclass(frozen=True)
class StreamLeaf:
    """A leaf, the plan whose sources are its streams, and the positions of the node's columns."""

    plan: JoinPlan
    spec: BlockSpec | LastRowsSpec
    places: tuple[int, ...] | None
    """For a single stream: which of its columns travel as the columns of the node."""


def build_single(node: Block) -> StreamLeaf:
    """A block of one stream: all columns are computed before rows are routed."""
    source = node.plan.sources[0]
    kinds = types_of(node.columns)
    items = [
        Carried(_own_ref(item, source), kind)
        for item, kind in zip(node.plan.items, kinds, strict=True)
    ]
    time = Carried(source.time, TIMESTAMP)
    ends = [Carried(one.until, TIMESTAMP) for one in node.lifetimes if one.until is not None]
    wanted = dict.fromkeys([*items, time, *ends])
    carried = _in_order(source, wanted, Types(node.plan.catalog, (source,)))
    source = replace(source, carried=carried)
    plan = replace(node.plan, sources=(source,), output=carried)
    places = tuple(carried.index(item) for item in items)
    lengths = [one.length for one in node.lifetimes if one.until is None]
    lifetimes = tuple(((1 + carried.index(time),), length) for length in lengths)
    until = 1 + carried.index(ends[0]) if ends else None
    values = tuple(Argument(1 + place) for place in places)
    names = _argument_names(plan, 1)
    spec = BlockSpec(build_join(plan), values, kinds, lifetimes, names, until)
    return StreamLeaf(plan, spec, places)


def build_block(node: Block) -> StreamLeaf:
    """A block of several streams: the join computes the values of results."""
    times = [Carried(s.time, TIMESTAMP) for s in node.plan.sources if not s.is_table]
    output = tuple(dict.fromkeys([*node.plan.output, *times]))
    plan = replace(node.plan, output=output)
    lifetimes = tuple(
        (
            tuple(1 + output.index(Carried(plan.by_name[s].time, TIMESTAMP)) for s in one.streams),
            one.length,
        )
        for one in node.lifetimes
    )
    spec = BlockSpec(
        build_join(plan),
        _item_values(plan, 1),
        types_of(node.columns),
        lifetimes,
        _argument_names(plan, 1),
    )
    return StreamLeaf(plan, spec, None)


def build_last_rows(node: LastRows) -> StreamLeaf:
    """The last rows of a stream; all columns are computed first, so that every row counts."""
    source = node.plan.sources[0]
    kinds = types_of(node.columns)
    items = [
        Carried(_own_ref(item, source), kind)
        for item, kind in zip(node.plan.items, kinds, strict=True)
    ]
    needed = dict.fromkeys([*source.carried, *items])
    carried = _in_order(source, needed, Types(node.plan.catalog, (source,)))
    source = replace(source, carried=carried)
    plan = replace(node.plan, sources=(source,), output=carried)
    window = rows_window(source)
    assert window is not None
    values = tuple(Argument(carried.index(item)) for item in items)
    spec = LastRowsSpec(carried_schema(source), layouts(plan)[0], window, values, kinds)
    return StreamLeaf(plan, spec, None)


def build_combine(node: Combine) -> ChangeJoinSpec:
    """A join of changelogs."""
    plan = node.plan
    timed = [number for number, one in enumerate(node.inputs) if not is_static(one)]
    return ChangeJoinSpec(
        tuple(types_of(one.columns) for one in node.inputs),
        tuple(
            tuple(
                tuple(source.carried.index(equal.of(source.name)) for equal in key.classes)
                if source.name in key.streams
                else None
                for key in plan.keys
            )
            for source in plan.sources
        ),
        tuple(residual(plan, condition) for condition in plan.residuals),
        tuple(
            (number, plan.sources[number].carried.index(one))
            for one in plan.output
            for number in (plan.number(one.ref.stream),)
        ),
        _item_values(plan, 0),
        types_of(node.columns),
        timed[0] if len(timed) == 1 else None,
        _argument_names(plan, 0),
    )


def spec_of(node: Combine | Operation) -> ChangeSpec:
    """The operator of a node that takes changes."""
    return build_combine(node) if isinstance(node, Combine) else node.spec


def item_ref(plan: JoinPlan, number: int) -> Ref | None:
    """The column of an item as it leaves the join; None if the item is computed."""
    tree = plan.items[number].value.tree
    if not isinstance(tree, ResolvedColumn) or tree.ref == RESULT_TIME:
        return None
    return leaves_as(tree.ref, plan, Types(plan.catalog, plan.sources))


def _item_values(plan: JoinPlan, first: int) -> tuple[Expression, ...]:
    """The items over the join's output, whose first column is an argument of this number."""
    types = Types(plan.catalog, plan.sources)
    output = [one.ref for one in plan.output]

    def argument(ref: Ref) -> Argument:
        if ref == RESULT_TIME:
            return Argument(0 if first else output.index(plan.sources[0].time))
        return Argument(first + output.index(leaves_as(ref, plan, types)))

    subset = SubsetCompiler(plan.sql, argument, plan.catalog.functions, plan.catalog.zone)
    return tuple(subset.compile(item.value.tree) for item in plan.items)


def _argument_names(plan: JoinPlan, first: int) -> tuple[str, ...]:
    """The names of the arguments of `_item_values`."""
    return ((str(RESULT_TIME),) if first else ()) + output_names(plan)


def _own_ref(item: Item, source: Source) -> Ref:
    """An item of one stream as a column that is available before the rows travel."""

    def own(tree: exp.Expr) -> exp.Expr:
        if isinstance(tree, ResolvedColumn):
            ref = source.time if tree.ref == RESULT_TIME else tree.ref
            return column(ref) if isinstance(ref, ColumnRef) else own(ref.tree)
        return rebuild(tree, own)

    tree = own(item.value.tree)
    if isinstance(tree, ResolvedColumn):
        return tree.ref
    return ComputedRef(source.name, spell_own(tree), tree)


def _in_order(source: Source, needed: dict[Carried, None], types: Types) -> tuple[Carried, ...]:
    """The columns as the stream declares them, then what is computed."""
    names = {name: place for place, name in enumerate(source.relation.columns)}

    def place(one: Carried) -> tuple[int, int]:
        plain = isinstance(one.ref, ColumnRef) and not one.ref.fields and one.ref.column in names
        if not plain or one.kind != types.of_ref(one.ref):
            return 1, 0
        assert isinstance(one.ref, ColumnRef)
        return 0, names[one.ref.column]

    return tuple(sorted(needed, key=place))
