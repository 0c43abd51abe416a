"""What queries may share of their plans: all that keeps state, and everything below it.

The sub-plan of a query reads its logs and runs its stages up to the last operator that keeps state.
What stands above keeps none: it makes the query's own results of what the sub-plan gives in a
micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from nilometer.engine.spelled import NotSpelledError, spelled
from nilometer.kernels.gather import join_batches
from nilometer.operators.compute import Compute, ComputeSpec, Net, NetSpec
from nilometer.operators.program import Program
from nilometer.operators.window_join import WindowJoinSpec

if TYPE_CHECKING:
    from nilometer.engine.plan import HostedPlan, OpenedFeed, PlanPart  # loads all of SQL
    from nilometer.engine.result_rows import ResultRows

_Above: TypeAlias = ComputeSpec | NetSpec


@dataclass(frozen=True)
class SubPlan:
    """The sub-plan of a query."""

    parts: tuple[PlanPart, ...]
    feeds: tuple[OpenedFeed, ...]
    """In the order of the parts' feeds."""
    needs_now: bool
    leaves_out: bool
    """Whether rows that cannot be computed are left out, or fail the query."""
    shed_above: int | None
    """When more rows of a log wait than this, only some of them are read; None: always all."""
    key: str | None
    """What sub-plans that do the same have in common; None: no other does the same."""


@dataclass(frozen=True)
class Above:
    """What one part of a query makes of what its sub-plan gives; it keeps no state."""

    rows: ResultRows
    steps: tuple[_Above, ...] = ()
    columns: tuple[int, ...] = ()
    """The columns to take of a join, in the order in which they are wanted; none: as they are."""

    def select(self, batches: Sequence[pa.RecordBatch]) -> tuple[int, list[pa.RecordBatch]]:
        """How many rows leave the last stage, and the same as rows of the log."""
        some = [one for one in batches if len(one)]
        if self.steps and some:
            changes = join_batches(some)
            for step in self.steps:
                operator = Compute(step) if isinstance(step, ComputeSpec) else Net()
                changes = operator.process([changes], 0)
            some = [changes] if len(changes) else []
        if self.columns:
            some = [one.select(self.columns) for one in some]
        return sum(map(len, some)), [self.rows.select(one) for one in some]


def cut_subplan(hosted: HostedPlan) -> tuple[SubPlan, tuple[Above, ...]]:
    """The sub-plan of a query, and what stands above each of its parts."""
    cuts = [_cut(part) for part in hosted.plan.parts]
    parts = tuple(part for part, _ in cuts)
    leaves_out = hosted.dead_letters is not None
    key = _key(parts, hosted, leaves_out)
    needs_now, shed = hosted.plan.needs_now, hosted.shed_above
    subplan = SubPlan(parts, hosted.feeds, needs_now, leaves_out, shed, key)
    return subplan, tuple(above for _, above in cuts)


def _cut(part: PlanPart) -> tuple[PlanPart, Above]:
    """A part without what stands above its sub-plan, and this."""
    *stages, last = part.stages
    match last.operator:
        case Program() as program:
            above = list[_Above]()
            while (step := _top(program)) is not None:
                above.insert(0, step)
                program = replace(program, steps=program.steps[:-1])
            cut, kept = replace(last, operator=program), Above(part.rows, tuple(above))
        case WindowJoinSpec() as join:  # its columns, in whichever order they are selected
            output = tuple(sorted(join.output))
            columns = (0, *(1 + output.index(one) for one in join.output))
            cut, kept = replace(last, operator=replace(join, output=output)), Above(part.rows)
            if output != join.output:
                kept = replace(kept, columns=columns)
        case _:
            return part, Above(part.rows)
    return replace(part, stages=(*stages, cut)), kept


def _top(program: Program) -> _Above | None:
    """The last of several steps, if it keeps no state and reads what the one before it gives."""
    if len(program.steps) < 2:
        return None
    last, before = program.steps[-1], len(program.leaves) + len(program.steps) - 2
    if last.inputs != (before,) or not isinstance(last.spec, ComputeSpec | NetSpec):
        return None
    return last.spec


def _key(parts: Sequence[PlanPart], hosted: HostedPlan, leaves_out: bool) -> str | None:
    if hosted.shed_above is not None:
        return None  # queries that fall behind leave out rows of their own
    feeds = [
        (one.log, one.layout.key, one.feed.stage, one.feed.stream, one.feed.reader, one.feed.where)
        for one in hosted.feeds
    ]
    planned = [(one.stages, one.sends, len(one.feeds), one.held) for one in parts]
    try:
        return spelled((planned, feeds, leaves_out))
    except NotSpelledError:
        return None
