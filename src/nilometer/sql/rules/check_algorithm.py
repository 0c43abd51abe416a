"""Whether the algorithm that the user chose can run the join."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.sql.hints import at_hint
from nilometer.sql.physical import build_join
from nilometer.sql.plan import JoinPlan


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
