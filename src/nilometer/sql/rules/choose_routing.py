"""Choose which bucket a row goes to: rows that may join must meet."""

from __future__ import annotations

from dataclasses import replace

from nilometer.kernels.routing import route_by_keys, route_with_rows, route_without_key
from nilometer.sql.physical.join_places import flat_columns, layouts, rows_windows
from nilometer.sql.plan.join_plan import JoinPlan


def choose_routing(plan: JoinPlan) -> JoinPlan:
    """By key where there is one; a ROWS window needs all rows of a partition in one place."""
    keys = tuple(layout.keys for layout in layouts(plan))
    if any(source.rows is not None for source in plan.sources):
        chosen = route_with_rows(keys, rows_windows(plan), plan.buckets)
        reason = (
            "a ROWS window needs all rows of its stream in one bucket"
            if chosen.key is None
            else "ROWS windows are partitioned by the join key"
        )
        return replace(plan, routing=chosen.routing, routing_reason=reason)
    if not plan.keys:
        columns = tuple(flat_columns(source) for source in plan.sources)
        reason = "no stream is copied" if len(columns) == 1 else "there is no key: rows are copied"
        routing = route_without_key(columns, plan.buckets)
        return replace(plan, routing=routing, routing_reason=reason)
    everywhere = all(key is not None for own in keys for key in own)
    reason = (
        "all streams share the key"
        if everywhere
        else "no key is common to all streams, so each key is a dimension"
    )
    return replace(plan, routing=route_by_keys(keys, plan.buckets), routing_reason=reason)
