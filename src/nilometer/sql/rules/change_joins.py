"""The same plan over other joins: in another number of buckets, or spread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nilometer.sql.plan.changes_plan import (
    Block,
    ChangesPlan,
    LastRows,
    Node,
    Plan,
    UnionPlan,
)
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.rules.choose_routing import choose_routing


def in_buckets(plan: Plan, buckets: int) -> Plan:
    """The plan as if it had been made for so many buckets, before its joins are spread."""
    changed = change_joins(plan, lambda join: choose_routing(replace(join, buckets=buckets)))
    return replace(changed, buckets=buckets) if isinstance(changed, ChangesPlan) else changed


def change_joins(plan: Plan, change: Callable[[JoinPlan], JoinPlan]) -> Plan:
    """The plan with each join of streams and tables changed."""
    match plan:
        case JoinPlan():
            return change(plan)
        case UnionPlan():
            return replace(plan, plans=tuple(map(change, plan.plans)))
    return replace(plan, root=_change_below(plan.root, change, {}))


def _change_below(
    node: Node, change: Callable[[JoinPlan], JoinPlan], done: dict[int, Node]
) -> Node:
    """The same tree over other joins; a node that is used twice stays one object."""
    changed = done.get(id(node))
    if changed is not None:
        return changed
    if isinstance(node, Block | LastRows):
        plan = change(node.plan)
        changed = node if plan is node.plan else replace(node, plan=plan)
    elif node.inputs:
        inputs = tuple(_change_below(one, change, done) for one in node.inputs)
        changed = replace(node, inputs=inputs)
    else:
        changed = node
    done[id(node)] = changed
    return changed
