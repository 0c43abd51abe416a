"""Choose the order in which a new row looks for partners (Golab section 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nilometer.kernels.chunk import Kernel
from nilometer.model import join_order
from nilometer.model.join_order import Links, Scan, StreamLoad
from nilometer.operators.join_orders import ASSUMED_DISTINCT, assume_load
from nilometer.sql.expressions.scalars import ColumnRef
from nilometer.sql.plan.join_plan import ChosenAlgorithm, JoinKey, JoinPlan, Source

BUCKETS: Final = (10,)
"""The default for the hash tables of Golab's joins."""


def choose_orders(plan: JoinPlan) -> JoinPlan:
    """An order for the new rows of every stream, chosen again as rates are measured."""
    loads = tuple(_load(plan, number, source) for number, source in enumerate(plan.sources))
    links = [frozenset(map(plan.number, key.streams)) for key in plan.keys]
    scan = Scan.HASH if plan.kernel is Kernel.HASH else Scan.NLJ
    orders = join_order.choose_orders(loads, links, scan)
    costs = join_order.cost_of_orders(loads, orders, links, scan).by_origin
    chosen = replace(plan, loads=loads, orders=orders, costs=costs)
    return chosen if plan.algorithm is None else _order_loops(chosen, plan.algorithm, links)


def _order_loops(plan: JoinPlan, chosen: ChosenAlgorithm, links: Links) -> JoinPlan:
    """The for-loops of an algorithm in heuristic order, unless the user gave an order.

    Windows in hash buckets count as a bucket (Golab section 5.3).
    """
    possible = chosen.algorithm.parameters
    if "order" not in possible or chosen.parameters.order is not None:
        return plan
    buckets = chosen.parameters.buckets or (BUCKETS if "buckets" in possible else None)
    loads = plan.loads
    if buckets is not None:
        each = buckets * len(loads) if len(buckets) == 1 else buckets
        loads = tuple(replace(load, buckets=b) for load, b in zip(loads, each, strict=True))
    order = [plan.sources[i].name for i in join_order.choose_global_order(loads, links)]
    parameters = chosen.parameters.with_order(order)
    return replace(plan, algorithm=replace(chosen, parameters=parameters))


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
