"""The columns by which the rows of a node are together, mapped up and down the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from nilometer.mining.registry import FunctionKind
from nilometer.model.expressions import Argument
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.paced import PacedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.sql.expressions.scalars import Ref
from nilometer.sql.physical.change_places import (
    item_ref,
)
from nilometer.sql.plan.changes_plan import Block, Mined, Node, Operation
from nilometer.sql.plan.join_plan import JoinPlan

Places: TypeAlias = tuple[int, ...]
"""Columns of a node by which its rows are together; none: all rows are in one bucket."""


def all_columns(node: Node) -> Places:
    """All columns by which rows can be routed; empty for a node without any."""
    return tuple(i for i, one in enumerate(node.columns) if not pat.is_null(one.kind))


def short_columns(node: Node) -> Places | None:
    """The columns of single values, by which rows are distributed cheaply; None: none."""
    kinds = [(place, node.columns[place].kind) for place in all_columns(node)]
    return tuple(place for place, kind in kinds if not pat.is_nested(kind)) or None


def through(
    wanted: Places | None, node: Operation, spec: ComputeSpec | AggregateSpec
) -> Places | None:
    """The columns below that wanted columns come from, if all are plain columns."""
    if wanted is None:
        return None
    columns = _columns_below(node, spec)
    below = [columns[place] for place in wanted]
    return None if None in below else tuple(place for place in below if place is not None)


def above(
    together: Places | None, node: Operation, spec: ComputeSpec | AggregateSpec
) -> Places | None:
    """The columns above that columns below have become, if all are kept."""
    if together is None:
        return None
    left = _columns_below(node, spec)
    return tuple(left.index(place) for place in together) if set(together) <= set(left) else None


def _columns_below(node: Operation, spec: ComputeSpec | AggregateSpec) -> list[int | None]:
    """For each column the plain column below it, if equal values of both are routed alike."""
    below = node.inputs[0].columns
    known = len(below) if isinstance(spec, ComputeSpec) else spec.keys
    return [
        value.number
        if isinstance(value, Argument)
        and not value.fields
        and value.number < known
        and _meet(below[value.number].kind, kind)
        else None
        for value, kind in zip(spec.values, spec.types, strict=True)
    ]


def _meet(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether equal values of two types are routed to one bucket, and others count as different."""
    if left == right:
        return True
    families = (pat.is_integer, pat.is_floating)
    return any(family(left) and family(right) for family in families)


def key_places(plan: JoinPlan, node: Node) -> Places | None:
    """The items that are the columns of a join's first key, if all are present."""
    classes = plan.keys[0].classes
    members = [equal.members for equal in classes]
    return shown(node, plan, members, [equal.kind for equal in classes])


def shown(
    node: Node,
    plan: JoinPlan,
    wanted: Sequence[tuple[Ref, ...]],
    kinds: Sequence[pa.DataType],
) -> Places | None:
    """The columns of a node that show columns of these types, one for each."""
    items = [item_ref(plan, number) for number in range(len(plan.items))]
    places = []
    for refs, kind in zip(wanted, kinds, strict=True):
        same = [
            place
            for place, (ref, one) in enumerate(zip(items, node.columns, strict=True))
            if ref is not None and ref in refs and _meet(kind, one.kind)
        ]
        if not same:
            return None
        places.append(same[0])
    return tuple(places)


def is_free(node: Node) -> bool:
    """Whether the rows of a node can be routed by any columns."""
    match node:
        case Block():
            return len(node.plan.sources) == 1
        case Operation(ComputeSpec() | UnionAllSpec()):
            return all(map(is_free, node.inputs))
    return False


def is_net(node: Node) -> bool:
    """Whether a node emits at most one change per row and instant."""
    match node:
        case Mined():
            return node.kind is FunctionKind.ANSWERS
        case Operation(SetCountsSpec() | TopRowsSpec() | PacedSpec()):
            return True
        case Operation(AggregateSpec() as spec):
            return set(range(spec.keys)) <= set(_columns_below(node, spec))
        case Operation(ComputeSpec() as spec):
            every = set(range(len(node.inputs[0].columns)))
            return every <= set(_columns_below(node, spec)) and is_net(node.inputs[0])
    return False
