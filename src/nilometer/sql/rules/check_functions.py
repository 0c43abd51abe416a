"""Check that registered functions get the arguments that they take."""

from __future__ import annotations

from nilometer.sql.plan.function_calls import check_calls
from nilometer.sql.plan.join_plan import JoinPlan


def check_functions(plan: JoinPlan) -> JoinPlan:
    """Refuse calls that Python would refuse on the first row."""
    below = (condition for source in plan.sources for condition in source.below)
    for scalar in (*plan.conditions, *below, *(item.value for item in plan.items)):
        check_calls(scalar, plan.catalog.functions)
    return plan
