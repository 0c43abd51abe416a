"""Check that the algorithm that the user chose can run the join."""

from __future__ import annotations

from nilometer.errors import InputError, SqlError
from nilometer.sql.physical.join_places import build_join
from nilometer.sql.plan.join_plan import JoinPlan


def check_algorithm(plan: JoinPlan) -> JoinPlan:
    """The same plan; raises an error, at the hint if any, if the algorithm cannot run it."""
    if plan.algorithm is not None:
        try:
            plan.algorithm.host(build_join(plan))
        except InputError as error:
            if plan.algorithm.place is None:
                raise
            raise SqlError.at(plan.algorithm.place, error) from None
    return plan
