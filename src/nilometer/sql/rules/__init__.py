"""The rules that turn a bound query into a plan that runs, in the order in which they apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.rules.bound_times import bound_times
from nilometer.sql.rules.check_algorithm import check_algorithm
from nilometer.sql.rules.check_functions import check_functions
from nilometer.sql.rules.check_types import check_types
from nilometer.sql.rules.check_windows import check_windows
from nilometer.sql.rules.choose_kernel import choose_kernel
from nilometer.sql.rules.choose_orders import choose_orders
from nilometer.sql.rules.choose_routing import choose_routing
from nilometer.sql.rules.equate_columns import equate_columns
from nilometer.sql.rules.place_residuals import place_residuals
from nilometer.sql.rules.prune_columns import prune_columns
from nilometer.sql.rules.push_selections import push_selections

RULES: Final[tuple[Callable[[JoinPlan], JoinPlan], ...]] = (
    check_functions,
    check_types,
    bound_times,
    check_windows,
    equate_columns,
    push_selections,
    place_residuals,
    prune_columns,
    check_algorithm,
    choose_kernel,
    choose_routing,
    choose_orders,
)


def apply_rules(plan: JoinPlan) -> JoinPlan:
    """The plan after all rules."""
    for rule in RULES:
        plan = rule(plan)
    return plan
