"""The stages of a plan in words: what each reads, how its rows are partitioned, what it sends."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.operators.program import Program
from nilometer.operators.stage import Execution, Stage
from nilometer.sql.physical.stages import PlannedStage, StreamInput, cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan

_DESCRIPTIONS: dict[Execution, str] = {
    Execution.ITA: "ITA, operators run when rows reach them",
    Execution.TPA: "TPA, operators follow the clocks of their inputs",
    Execution.NTA: "NTA, expired rows are sent again as negative rows",
}


def describe_stages(plan: ChangesPlan) -> Iterator[str]:
    """A line for the plan, and one for each stage."""
    stages = cut_into_stages(plan).stages
    count = "one stage" if len(stages) == 1 else f"{len(stages)} stages"
    yield f"Runs in {count} ({_DESCRIPTIONS[stages[0].stage.execution]})"
    for number, one in enumerate(stages, start=1):
        yield f"  {number}. {_reads(one)}; {_together(one)}{_sends(one)}"


def _reads(planned: PlannedStage) -> str:
    return f"reads {', '.join(planned.stage.names)}"


def _together(planned: PlannedStage) -> str:
    buckets = planned.stage.routing.buckets
    if buckets == 1:
        return "all rows in one bucket"
    parting = next((one.plan.parting for one in planned.streams if one.plan.parting), None)
    if parting is not None and parting.parts > 1:
        return f"{buckets} buckets, rows of {parting.stream} with the same key in {parting.parts}"
    columns = _columns(planned)
    by = f", rows partitioned by {columns}" if columns else ""
    return f"{buckets} buckets{by}"


def _columns(planned: PlannedStage) -> str:
    """The columns by which rows of the first stream are partitioned, if the stage reads it."""
    routing, first = planned.stage.routing, planned.inputs[0]
    places = routing.places[0]
    if len(routing.shares) > 1 or places[0] is None:
        return ""
    if not isinstance(first, StreamInput):
        return _numbers(planned.stage, places[0])
    carried = first.plan.sources[first.source].carried
    return ", ".join(str(carried[place].ref) for place in places[0])


def _numbers(stage: Stage, places: tuple[int, ...]) -> str:
    """Columns sent by another stage have no names: they are numbered."""
    operator = stage.operator
    assert isinstance(operator, Program)
    if len(places) == len(operator.leaves[0].types):
        return "all columns"
    return ", ".join(f"column {place + 1}" for place in places)


def _sends(planned: PlannedStage) -> str:
    if planned.to_stage is None:
        return ""
    operator = planned.stage.operator
    assert isinstance(operator, Program)
    form = "rows with their validity periods" if operator.sends_periods else "changes"
    return f"; sends {form} to stage {planned.to_stage + 1}"
