"""What is left is asked by the join as soon as the streams are joined, or by Spark afterwards."""

from __future__ import annotations

from dataclasses import replace

from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import Types


def place_residuals(plan: JoinPlan) -> JoinPlan:
    """Empty the conditions: into residuals where they can be evaluated here."""
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
