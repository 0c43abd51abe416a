"""In which order a new row looks for partners (Golab section 5), by what is known of streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nilometer.kernels.chunk import Kernel
from nilometer.model import join_order
from nilometer.model.join_order import Scan, StreamLoad, cost_of_orders
from nilometer.model.time import FOREVER
from nilometer.sql.plan import JoinKey, JoinPlan, Source
from nilometer.sql.scalars import ColumnRef

ASSUMED_RATE: Final = 1.0
ASSUMED_DISTINCT: Final = 100.0
ASSUMED_TABLE: Final = 1000.0
_SECOND: Final = 1e6


def choose_orders(plan: JoinPlan) -> JoinPlan:
    """An order for the new rows of every stream; it is chosen again as rates are measured."""
    if len(plan.sources) == 1:
        return replace(plan, orders=((),))
    loads, links = loads_of(plan), links_of(plan)
    scan = Scan.HASH if plan.kernel is Kernel.HASH else Scan.NLJ
    orders = join_order.choose_orders(loads, links, scan)
    cost = cost_of_orders(loads, orders, links, scan)
    return replace(plan, orders=orders, costs=cost.by_origin)


def links_of(plan: JoinPlan) -> list[frozenset[int]]:
    """Which streams each key links."""
    return [frozenset(map(plan.number, key.streams)) for key in plan.keys]


def loads_of(plan: JoinPlan) -> list[StreamLoad]:
    """Rates, windows and distinct values, as declared or assumed."""
    return [_load(plan, number, source) for number, source in enumerate(plan.sources)]


def _load(plan: JoinPlan, number: int, source: Source) -> StreamLoad:
    distinct = tuple(_distinct(source, key) for key in plan.keys)
    if source.is_table:
        return StreamLoad.of_table(ASSUMED_TABLE, distinct)
    declared = source.relation.statistics.rate
    rate = ASSUMED_RATE if declared is None else declared
    if source.rows is not None:
        return StreamLoad(rate, source.rows.count / rate, distinct)
    return StreamLoad(rate, max(1, _window(plan, number)) / _SECOND, distinct)


def _window(plan: JoinPlan, number: int) -> int:
    """The longest time between a row and a partner, of those that are bounded."""
    closed, others = plan.network.closed, range(len(plan.sources))
    bounds = [bound for j in others for bound in (closed[number][j], closed[j][number])]
    return max(bound for bound in bounds if bound < FOREVER)


def _distinct(source: Source, key: JoinKey) -> float:
    if source.name not in key.streams:
        return 1.0
    total = 1.0
    for equal in key.classes:
        ref = equal.of(source.name).ref
        name = ref.column if isinstance(ref, ColumnRef) else ""
        total *= source.relation.statistics.distinct.get(name, ASSUMED_DISTINCT)
    return total
