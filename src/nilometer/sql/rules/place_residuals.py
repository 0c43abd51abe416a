"""Remaining conditions are tested by the join once their streams are joined, or by Spark later."""

from __future__ import annotations

from dataclasses import replace

from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import Types


def place_residuals(plan: JoinPlan) -> JoinPlan:
    """Move all conditions into residuals where they can be evaluated here, else to Spark."""
    types = Types(plan.catalog, plan.sources)
    residuals, after = [], []
    for condition in plan.conditions:
        lifted = types.lift(condition)
        try:
            types.of_subset(lifted)
            residuals.append(lifted)
        except NotInSubsetError:
            after.append(condition)
    return replace(plan, conditions=(), residuals=tuple(residuals), after=tuple(after))
