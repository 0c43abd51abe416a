"""The costs of for-loops: the formulas behind Golab figures 2 and 3, derived again.

The paper's own derivations are in an extended version that is not available. The unit is a tuple
that a loop compares with the combination above it; the outermost loop compares nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from math import prod

from nilometer.model.join_cost import Order, StreamLoad


def loop_cost(
    loads: Sequence[StreamLoad],
    order: Sequence[int],
    origin: int,
    tau: float | None,
    time_tests: bool,
) -> float:
    """Tuples compared per unit of time for new tuples of one stream, at their place in an order.

    Eager (no tau): each new tuple meets windows of lambda * T tuples. Lazy: lambda * tau new
    tuples meet windows that hold lambda * (T + tau), of which lambda * T are in time for a new
    one. Formulas without time tests pass the others on, too.
    """
    stale = tau or 0.0
    held = [
        (load.rate * tau if tau else 1.0) if j == origin else load.rate * (load.window + stale)
        for j, load in enumerate(loads)
    ]
    in_time = [load.window / (load.window + stale) for load in loads]
    place = order.index(origin)
    compared, partial, least = 0.0, held[order[0]], loads[order[0]].distinct_of(0)
    for depth, j in enumerate(order[1:], 1):
        compared += partial * held[j]
        values = loads[j].distinct_of(0)
        partial *= held[j] / max(least, values)
        least = min(least, values)
        if time_tests and depth >= place:
            tested = order[:depth] if depth == place else [j]
            partial *= prod(in_time[u] for u in tested)
    return compared * (1 / tau if tau else loads[origin].rate)


def naive_plans(order: Sequence[int]) -> list[Order]:
    """The single order, whatever the origin."""
    return [tuple(order)] * len(order)


def lazy_plans(order: Sequence[int]) -> list[Order]:
    """For each origin, itself on top and the others in the single order."""
    return [(i, *(j for j in order if j != i)) for i in range(len(order))]


def total_cost(
    loads: Sequence[StreamLoad], plans: Sequence[Order], tau: float | None, time_tests: bool
) -> float:
    """Tuples compared per unit of time, with an order for each origin."""
    return sum(loop_cost(loads, plan, i, tau, time_tests) for i, plan in enumerate(plans))


def best_plans(
    loads: Sequence[StreamLoad],
    candidates: Iterable[list[Order]],
    tau: float | None,
    time_tests: bool = False,
) -> list[Order]:
    """The cheapest of some plans by the formula with or without time tests."""
    return min(candidates, key=lambda plans: total_cost(loads, plans, tau, time_tests))


def best_naive_plans(
    loads: Sequence[StreamLoad], tau: float | None, time_tests: bool = False
) -> list[Order]:
    """The best of all global orders for NAIVE MULTI-WAY NLJ."""
    return best_plans(loads, map(naive_plans, permutations(range(len(loads)))), tau, time_tests)


def best_lazy_plans(
    loads: Sequence[StreamLoad], tau: float | None, time_tests: bool = False
) -> list[Order]:
    """The best of all global orders for EAGER and LAZY MULTI-WAY NLJ."""
    return best_plans(loads, map(lazy_plans, permutations(range(len(loads)))), tau, time_tests)


def best_general_plans(
    loads: Sequence[StreamLoad], tau: float, time_tests: bool = False
) -> list[Order]:
    """For each origin the best of all orders: they do not affect each other."""

    def cost(origin: int, plan: Order) -> float:
        return loop_cost(loads, plan, origin, tau, time_tests)

    every = list(permutations(range(len(loads))))
    # Ties go to the plan with the new tuples on top, which LAZY uses.
    return [
        min(every, key=lambda plan, i=i: (round(cost(i, plan), 6), plan.index(i)))  # type: ignore[misc]
        for i in range(len(loads))
    ]
