"""A window join as a tree of steps: what is read, filtered, joined and computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nilometer.sql.explain.describe_sources import (
    describe_kernel,
    how_long,
    kept_columns,
    key_label,
    source_label,
)
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.sensor_conditions import describe_sensors


@dataclass(frozen=True)
class PlanStep:
    """What an operator does, its details, and its inputs."""

    head: str
    details: tuple[str, ...]
    inputs: tuple[PlanStep, ...]


def picture_join(plan: JoinPlan) -> PlanStep:
    """The step for a join, with one for each source below it."""
    sources = tuple(_source(plan, number) for number in range(len(plan.sources)))
    inputs = sources
    if len(sources) > 1:
        head = f"Window join of {len(sources)} sources"
        inputs = (PlanStep(head, tuple(_matching(plan)), sources),)
    columns = ", ".join(item.name for item in plan.items)
    return PlanStep(f"Columns {columns}", tuple(_after(plan)), inputs)


def _after(plan: JoinPlan) -> Iterator[str]:
    yield from (f"checked by Spark: {condition}" for condition in plan.after)
    yield "every result is appended once"


def _matching(plan: JoinPlan) -> Iterator[str]:
    yield from (f"key: {key_label(key)}" for key in plan.keys)
    yield from (f"join condition: {condition}" for condition in plan.residuals)
    if plan.algorithm is None:
        yield describe_kernel(plan.kernel)
        return
    yield f"{plan.algorithm.name} ({plan.algorithm.paper}), one tuple at a time"


def _source(plan: JoinPlan, number: int) -> PlanStep:
    source = plan.sources[number]
    details = []
    if (sensors := describe_sensors(plan, source)) is not None:
        details.append(f"sensors: {sensors}")
    details += [f"filter: {condition}" for condition in (*source.below, *source.above)]
    details.append(f"columns: {', '.join(kept_columns(plan, number)) or 'its time'}")
    details.append(f"kept: {how_long(plan, number)}")
    kind = "Table" if source.is_table else "Stream"
    return PlanStep(f"{kind} {source_label(source)}", tuple(details), ())
