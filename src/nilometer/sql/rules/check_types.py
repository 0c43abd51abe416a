"""Check that every condition is boolean, and every expression has a type."""

from __future__ import annotations

from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import Types


def check_types(plan: JoinPlan) -> JoinPlan:
    """Refuse expressions whose parts have incompatible types."""
    types = Types(plan.catalog, plan.sources)
    for condition in (*plan.conditions, *(c for s in plan.sources for c in s.below)):
        types.require_condition(condition)
    for item in plan.items:
        types.of(item.value)
    for source in plan.sources:
        for value in source.rows.partition if source.rows is not None else ():
            types.of(value)
    return plan
