"""Compute below the join what only Spark can evaluate, so that the rest is evaluated above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.expressions.scalars import ComputedRef, Scalar, column, spell_own
from nilometer.sql.plan.join_plan import Item, JoinPlan
from nilometer.sql.plan.types import Types


def lift_items(plan: JoinPlan) -> JoinPlan:
    """The items, with such parts as columns of their streams."""
    return replace(plan, items=tuple(_lifted(plan)))


def _lifted(plan: JoinPlan) -> Iterator[Item]:
    types = Types(plan.catalog, plan.sources)
    for item in plan.items:
        value = item.value
        if not value.streams:
            value = _as_constant(value, plan, types)
        lifted = types.lift(value)
        types.of_subset(lifted)
        yield Item(item.name, lifted)


def _as_constant(value: Scalar, plan: JoinPlan, types: Types) -> Scalar:
    """An expression without columns; if only Spark can compute it, a column of some stream."""
    try:
        types.of_subset(value)
    except NotInSubsetError:
        for source in plan.sources:
            if source.node is None:
                ref = ComputedRef(source.name, spell_own(value.tree), value.tree)
                return Scalar(column(ref), value.place)
    return value
