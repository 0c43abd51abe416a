"""Test conditions on one stream before the join, after its watermark has been read.

With a ROWS window they are tested on what the window holds: a row that is not
selected still counts among the last n.
"""

from __future__ import annotations

from dataclasses import replace

from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.plan.join_plan import JoinPlan, Source


def push_selections(plan: JoinPlan) -> JoinPlan:
    """Move conditions on one stream, or on none, to the streams."""
    selections: dict[str, list[Scalar]] = {source.name: [] for source in plan.sources}
    remaining = []
    for condition in plan.conditions:
        if len(condition.streams) > 1:
            remaining.append(condition)
        else:  # what holds for no row of one stream leaves no result at all
            selections[next(iter(condition.streams), plan.sources[0].name)].append(condition)
    sources = tuple(_select(source, selections[source.name]) for source in plan.sources)
    return replace(plan, sources=sources, conditions=tuple(remaining))


def _select(source: Source, conditions: list[Scalar]) -> Source:
    if source.rows is not None:
        return replace(source, above=(*source.above, *conditions))
    return replace(source, below=(*source.below, *conditions))
