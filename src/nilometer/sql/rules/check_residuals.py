"""Check that what is left to test on joined rows can be evaluated where windows are."""

from __future__ import annotations

from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import Types


def check_residuals(plan: JoinPlan) -> JoinPlan:
    """Refuse conditions on joined rows that only Spark can evaluate."""
    types = Types(plan.catalog, plan.sources)
    for condition in plan.after:
        types.of_subset(types.lift(condition))
    return plan
