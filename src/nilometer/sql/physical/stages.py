"""A windowed plan as stages: what runs where, what it reads, and where it sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nilometer.kernels.routing import Routing
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.block import BlockSpec
from nilometer.operators.compute import NetSpec
from nilometer.operators.key_counts import RoutingKey, routing_keys
from nilometer.operators.leaves import LeafSpec
from nilometer.operators.program import Program, Step
from nilometer.operators.received import ReceivedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.stage import Execution, Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.physical.join_places import column_names
from nilometer.sql.physical.place_nodes import PlacedTask, Placer, StageDraft, Task
from nilometer.sql.physical.rows_together import all_columns, is_net
from nilometer.sql.plan.changes_plan import ChangesPlan, Column, types_of
from nilometer.sql.plan.join_plan import JoinPlan

BEST: Final = Execution.TPA
"""Rows travel once, with their periods: the best execution as measured."""


@dataclass(frozen=True)
class StreamInput:
    """The rows of a source."""

    plan: JoinPlan
    source: int

    @property
    def relation(self) -> str:
        """The name of what is read."""
        return self.plan.sources[self.source].relation.name


@dataclass(frozen=True)
class StageInput:
    """What another stage sends."""

    stage: int


@dataclass(frozen=True)
class PlannedStage:
    """A stage, where its streams come from, and to which stream of which stage it sends."""

    stage: Stage
    inputs: tuple[StreamInput | StageInput, ...]
    to_stage: int | None = None
    to_stream: int = 0
    overhears: tuple[StreamInput, ...] = ()
    """Sources of other stages whose times are also reported here."""

    @property
    def streams(self) -> Iterator[StreamInput]:
        """The sources that are read."""
        return (one for one in self.inputs if isinstance(one, StreamInput))


@dataclass(frozen=True)
class StagedPlan:
    """All stages, each after those that send to it; the answer leaves the last."""

    plan: ChangesPlan
    stages: tuple[PlannedStage, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.plan.root.columns

    @property
    def streams(self) -> Iterator[tuple[int, int, StreamInput]]:
        """(stage, stream in it, source) of every stream that is read."""
        for number, one in enumerate(self.stages):
            for stream, stage_input in enumerate(one.inputs):
                if isinstance(stage_input, StreamInput):
                    yield number, stream, stage_input


def cut_into_stages(plan: ChangesPlan, execution: Execution | None = None) -> StagedPlan:
    """The stages of a plan.

    Execution says in which form rows travel between them, unless the plan's own hint does.
    """
    execution = plan.execution or execution or BEST
    placer = Placer(plan.buckets)
    root = placer.place(plan.root, None)
    if not plan.appends and not is_net(plan.root):
        everything = all_columns(plan.root)
        if root.together is None:
            root = placer.cut(root, plan.root, everything)
        net = Task(NetSpec(types_of(plan.root.columns)), [root.task], root.task.draft)
        root = PlacedTask(net, root.together)
    return StagedPlan(plan, _overhearing(_finish(root.task, execution)))


def _overhearing(stages: Sequence[PlannedStage]) -> tuple[PlannedStage, ...]:
    """The stages; if a stream may be idle, each also gets the times of the others' streams."""
    every = {stream.relation: stream for one in stages for stream in one.streams}
    if not any(clock.idle is not None for one in stages for clock in one.stage.clocks):
        return tuple(stages)
    extended = []
    for one in stages:
        own = {stream.relation for stream in one.streams}
        others = [stream for name, stream in every.items() if name not in own]
        others = [stream for stream in others if not _is_table(stream)]
        clocks = tuple(_clock(stream, {}) for stream in others)
        stage = replace(one.stage, overheard=clocks)
        extended.append(replace(one, stage=stage, overhears=tuple(others)))
    return tuple(extended)


def _finish(last: Task, execution: Execution) -> tuple[PlannedStage, ...]:
    """The stages that lead to a task."""
    outputs: dict[StageDraft, Task] = {}
    _collect(last, outputs)
    order = list(outputs)
    stages: dict[StageDraft, PlannedStage] = {}
    for draft in order:
        stages[draft] = _stage(draft, outputs[draft], stages, execution, draft is not order[-1])
        for stream, stage_input in enumerate(stages[draft].inputs):
            if isinstance(stage_input, StageInput):
                sender = order[stage_input.stage]
                stages[sender] = replace(
                    stages[sender], to_stage=order.index(draft), to_stream=stream
                )
    return tuple(stages[draft] for draft in order)


def _stage(
    draft: StageDraft,
    output: Task,
    before: dict[StageDraft, PlannedStage],
    execution: Execution,
    sends: bool,
) -> PlannedStage:
    tasks: list[Task] = []
    _collect_tasks(output, tasks)
    leaves = [task for task in tasks if not task.inputs]
    steps = [task for task in tasks if task.inputs]
    numbers = {task: number for number, task in enumerate([*leaves, *steps])}
    inputs = [one for leaf in leaves for one in _inputs(leaf, list(before))]
    senders = dict(enumerate(before.values()))
    program = Program(
        tuple(_distinct([_name(one) for one in inputs])),
        frozenset(i for i, one in enumerate(inputs) if _is_table(one)),
        tuple(_leaf(leaf, before) for leaf in leaves),
        tuple(_step(task, numbers) for task in steps),
        sends and not steps and execution is not Execution.NTA and _is_block(leaves[0]),
        tuple(leaf.together for leaf in leaves),
    )
    clocks = tuple(_clock(one, senders) for one in inputs)
    places = tuple((own,) for leaf in leaves for own in leaf.places)
    routing = draft.routing or Routing((draft.buckets,), places, with_nulls=True)
    keys = _keys(leaves, routing, is_dealt=draft.routing is not None)
    return PlannedStage(Stage(program, clocks, routing, execution, keys=keys), tuple(inputs))


def _keys(leaves: Sequence[Task], routing: Routing, *, is_dealt: bool) -> tuple[RoutingKey, ...]:
    """The keys by which rows are routed; `is_dealt`: as the join of a leaf needs it."""
    plans = [leaf.streams[0][0] for leaf in leaves if leaf.streams]
    if is_dealt and not any(plan.keys for plan in plans):
        return ()
    return routing_keys(routing, [names for leaf in leaves for names in _column_names(leaf)])


def _column_names(leaf: Task) -> list[tuple[str, ...]]:
    """The names of the columns of each of a leaf's streams."""
    if leaf.feed is not None:
        return [leaf.names]
    return [column_names(plan.sources[number]) for plan, number in leaf.streams]


def _inputs(leaf: Task, drafts: Sequence[StageDraft]) -> list[StreamInput | StageInput]:
    if leaf.feed is not None:
        return [StageInput(drafts.index(leaf.feed.draft))]
    return [StreamInput(plan, source) for plan, source in leaf.streams]


def _leaf(leaf: Task, before: dict[StageDraft, PlannedStage]) -> LeafSpec:
    if leaf.feed is None:
        return leaf.leaf
    sender = before[leaf.feed.draft].stage.operator
    assert isinstance(sender, Program)
    return ReceivedSpec(leaf.spec.types, sender.sends_periods)


def _step(task: Task, numbers: Mapping[Task, int]) -> Step:
    """A step; operators that keep groups also learn by what their rows are routed."""
    together = tuple(one.together for one in task.inputs)
    spec = task.step
    if isinstance(spec, AggregateSpec | SetCountsSpec):
        spec = replace(spec, routed_by=together[0])
    return Step(spec, tuple(numbers[one] for one in task.inputs), together)


def _is_block(leaf: Task) -> bool:
    return isinstance(leaf.spec, BlockSpec)


def _name(stage_input: StreamInput | StageInput) -> str:
    if isinstance(stage_input, StageInput):
        return f"stage {stage_input.stage + 1}"
    return stage_input.plan.sources[stage_input.source].name


def _is_table(stage_input: StreamInput | StageInput) -> bool:
    return (
        isinstance(stage_input, StreamInput)
        and stage_input.plan.sources[stage_input.source].is_table
    )


def _clock(stage_input: StreamInput | StageInput, senders: dict[int, PlannedStage]) -> StreamClock:
    if isinstance(stage_input, StageInput):
        return StreamClock(senders=senders[stage_input.stage].stage.routing.buckets)
    source = stage_input.plan.sources[stage_input.source]
    return StreamClock(ended=True) if source.is_table else source.relation.clock


def _collect(output: Task, outputs: dict[StageDraft, Task]) -> None:
    """The stages that lead to a task, senders first, and what they send."""
    tasks: list[Task] = []
    _collect_tasks(output, tasks)
    for task in tasks:
        if task.feed is not None and task.feed.draft not in outputs:
            _collect(task.feed, outputs)
    outputs[output.draft] = output


def _collect_tasks(task: Task, tasks: list[Task]) -> None:
    for one in task.inputs:
        if one not in tasks:
            _collect_tasks(one, tasks)
    tasks.append(task)


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """The names, numbered where one is repeated."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"
