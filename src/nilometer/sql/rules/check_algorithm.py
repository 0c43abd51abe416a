"""Whether the algorithm that the user chose can run the join."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.sql.physical.join_places import build_join
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.rewrite.hints import at_hint


def check_algorithm(plan: JoinPlan) -> JoinPlan:
    """The same plan; an error says what the algorithm cannot take, at its hint if it has one."""
    if plan.algorithm is not None:
        from nilometer.algorithms.hosted_join import HostedJoinSpec  # noqa: PLC0415  rarely needed

        try:
            HostedJoinSpec(build_join(plan), plan.algorithm.name, plan.algorithm.parameters)
        except InputError as error:
            if plan.algorithm.place is None:
                raise
            raise at_hint(error, plan.algorithm.place) from None
    return plan
