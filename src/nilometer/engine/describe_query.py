"""Describes what identifies a query, to be stored with its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nilometer.engine.same_query import PREDICATES, STAGES
from nilometer.kernels.expression_types import type_name
from nilometer.model.time import format_duration
from nilometer.operators.stage import Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.physical.stages import StagedPlan
from nilometer.sql.plan.join_plan import JoinPlan, Source


def describe_changes(staged: StagedPlan) -> dict[str, Any]:
    """A windowed plan."""
    sources = [given.plan.sources[given.source] for _, _, given in staged.streams]
    clocks = [staged.stages[n].stage.clocks[stream] for n, stream, _ in staged.streams]
    return {
        "statement": " ".join(staged.plan.sql.split()),
        **_describe_sources(sources, clocks),
        "executions": [str(one.stage.execution) for one in staged.stages[:1]],
        STAGES: [one.stage.routing.buckets for one in staged.stages],
    }


def describe_join(plan: JoinPlan, stage: Stage) -> dict[str, Any]:
    """An append plan."""
    return {
        "streams": list(stage.names),
        "algorithms": [] if plan.algorithm is None else [plan.algorithm.name],
        **_describe_sources(plan.sources, stage.clocks),
        "keys": [
            [[str(equal.of(s).ref) for equal in key.classes] for s in sorted(key.streams)]
            for key in plan.keys
        ],
        "windows": [[format_duration(bound) for bound in row] for row in plan.network.closed],
        "ROWS windows": [None if s.rows is None else str(s.rows) for s in plan.sources],
        PREDICATES: _texts([*(c for s in plan.sources for c in (*s.below, *s.above))])
        + _texts(plan.residuals)
        + _texts(plan.after),
    }


def _describe_sources(
    sources: Sequence[Source], clocks: Sequence[StreamClock]
) -> Mapping[str, Any]:
    return {
        "columns": [
            [f"{one.ref.sql} {type_name(one.kind)}" for one in source.carried] for source in sources
        ],
        "time columns": [source.relation.time for source in sources],
        "lateness": [format_duration(clock.lateness) for clock in clocks],
        "idle times": [None if c.idle is None else format_duration(c.idle) for c in clocks],
    }


def _texts(conditions: Sequence[Scalar]) -> list[str]:
    return [str(condition) for condition in conditions]
