"""Choose the order in which a new row looks for partners (Golab section 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nilometer.kernels.chunk import Kernel
from nilometer.model import join_order
from nilometer.model.index_choice import choose_loops, indexes_that_pay
from nilometer.model.join_cost import Links, Predicate, Scan, StreamLoad, cost_of_orders
from nilometer.operators.join_orders import ASSUMED_DISTINCT, assume_load
from nilometer.sql.expressions.scalars import ColumnRef
from nilometer.sql.plan.function_calls import cost_of_calls
from nilometer.sql.plan.join_plan import ChosenAlgorithm, JoinKey, JoinPlan, Source

BUCKETS: Final = (10,)
"""The default for the hash tables of Golab's joins."""

_SECOND: Final = 1e6


def choose_orders(plan: JoinPlan) -> JoinPlan:
    """An order for the new rows of every stream, chosen again as rates are measured."""
    loads = tuple(_load(plan, number, source) for number, source in enumerate(plan.sources))
    links = [frozenset(map(plan.number, key.streams)) for key in plan.keys]
    scan = Scan.HASH if plan.kernel is Kernel.HASH else Scan.NLJ
    predicates = [
        Predicate(frozenset(map(plan.number, condition.streams)), cost)
        for condition in plan.residuals
        if (cost := cost_of_calls(condition, plan.catalog.functions))
    ]
    orders = join_order.choose_orders(loads, links, scan, predicates)
    costs = cost_of_orders(loads, orders, links, scan, predicates).by_origin
    chosen = replace(plan, loads=loads, orders=orders, costs=costs)
    return chosen if plan.algorithm is None else _order_loops(chosen, plan.algorithm, links)


def _order_loops(plan: JoinPlan, chosen: ChosenAlgorithm, links: Links) -> JoinPlan:
    """The for-loops of an algorithm in heuristic order, unless the user gave an order.

    Windows in hash buckets count as a bucket (Golab section 5.3).
    """
    possible, parameters = chosen.algorithm.parameters, chosen.parameters
    if chosen.algorithm.may_scan and parameters.buckets is None:
        parameters = replace(parameters, buckets=_choose_buckets(plan, links, parameters.tau))
    if "order" in possible and parameters.order is None:
        buckets = parameters.buckets or (BUCKETS if "buckets" in possible else (0,))
        each = buckets * len(plan.loads) if len(buckets) == 1 else buckets
        loads = [replace(one, buckets=b or None) for one, b in zip(plan.loads, each, strict=True)]
        order = tuple(plan.sources[i].name for i in choose_loops(loads, links))
        parameters = replace(parameters, order=order)
    return replace(plan, algorithm=replace(chosen, parameters=parameters))


def _choose_buckets(plan: JoinPlan, links: Links, tau: int | None) -> tuple[int, ...] | None:
    """Hash tables on the windows where they pay (Golab section 5.4), if all rates are known."""
    if any(source.relation.statistics.rate is None for source in plan.sources):
        return None
    (buckets,) = BUCKETS
    sweeps = sum(one.rate for one in plan.loads) if tau is None else _SECOND / tau
    chosen = indexes_that_pay(plan.loads, buckets, sweeps, links)
    return tuple(buckets if i in chosen else 0 for i in range(len(plan.loads)))


def _load(plan: JoinPlan, number: int, source: Source) -> StreamLoad:
    distinct = tuple(_distinct(source, key) for key in plan.keys)
    rows = None if source.rows is None else source.rows.count
    return assume_load(plan.network, number, distinct, source.relation.statistics.rate, rows)


def _distinct(source: Source, key: JoinKey) -> float:
    if source.name not in key.streams:
        return 1.0
    total = 1.0
    for equal in key.classes:
        ref = equal.of(source.name).ref
        name = ref.path if isinstance(ref, ColumnRef) else ""
        total *= source.relation.statistics.distinct.get(name, ASSUMED_DISTINCT)
    return total
