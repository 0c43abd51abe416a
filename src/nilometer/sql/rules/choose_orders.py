"""In which order a new row looks for partners (Golab section 5), by what is known of streams."""

from __future__ import annotations

from dataclasses import replace

from nilometer.kernels.chunk import Kernel
from nilometer.model import join_order
from nilometer.model.join_order import Scan, StreamLoad
from nilometer.operators.join_orders import ASSUMED_DISTINCT, assume_load
from nilometer.sql.plan import JoinKey, JoinPlan, Source
from nilometer.sql.scalars import ColumnRef


def choose_orders(plan: JoinPlan) -> JoinPlan:
    """An order for the new rows of every stream; it is chosen again as rates are measured."""
    loads = tuple(_load(plan, number, source) for number, source in enumerate(plan.sources))
    links = [frozenset(map(plan.number, key.streams)) for key in plan.keys]
    scan = Scan.HASH if plan.kernel is Kernel.HASH else Scan.NLJ
    orders = join_order.choose_orders(loads, links, scan)
    costs = join_order.cost_of_orders(loads, orders, links, scan).by_origin
    return replace(plan, loads=loads, orders=orders, costs=costs)


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
        name = ref.column if isinstance(ref, ColumnRef) else ""
        total *= source.relation.statistics.distinct.get(name, ASSUMED_DISTINCT)
    return total
