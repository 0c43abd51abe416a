"""The rules that turn a bound query, or a part of one, into a plan that runs, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.rules.bound_times import bound_times
from nilometer.sql.rules.check_algorithm import check_algorithm
from nilometer.sql.rules.check_functions import check_functions
from nilometer.sql.rules.check_residuals import check_residuals
from nilometer.sql.rules.check_types import check_types
from nilometer.sql.rules.check_windows import check_windows
from nilometer.sql.rules.choose_kernel import choose_kernel
from nilometer.sql.rules.choose_orders import choose_orders
from nilometer.sql.rules.choose_routing import choose_routing
from nilometer.sql.rules.equate_columns import equate_columns
from nilometer.sql.rules.lift_items import lift_items
from nilometer.sql.rules.place_residuals import place_residuals
from nilometer.sql.rules.prune_columns import prune_columns
from nilometer.sql.rules.push_selections import push_selections

Rule: TypeAlias = Callable[[JoinPlan], JoinPlan]

_CHECKS: Final[tuple[Rule, ...]] = (check_functions, check_types)
_OF_ROWS: Final[tuple[Rule, ...]] = (
    equate_columns,
    push_selections,
    place_residuals,
    prune_columns,
    check_algorithm,
    choose_kernel,
)

JOIN_RULES: Final = (
    *_CHECKS,
    bound_times,
    check_windows,
    *_OF_ROWS,
    choose_routing,
    choose_orders,
)
"""For a join whose results are the query's."""

BLOCK_RULES: Final = (
    *_CHECKS,
    lift_items,
    bound_times,
    check_windows,
    *_OF_ROWS,
    choose_routing,
    choose_orders,
    check_residuals,
)
"""For streams that are joined below windows, aggregates and lists."""

COMBINE_RULES: Final = (*_CHECKS, lift_items, *_OF_ROWS, choose_orders, check_residuals)
"""For a join of nodes, whose rows have no times and buckets of their own."""


def apply_rules(plan: JoinPlan, rules: tuple[Rule, ...] = JOIN_RULES) -> JoinPlan:
    """The plan after all of these rules."""
    for rule in rules:
        plan = rule(plan)
    return plan
