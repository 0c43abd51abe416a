"""A query as data: what it reads, its stages, and how its results become rows of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nilometer.engine.describe_query import describe_changes, describe_join
from nilometer.engine.result_rows import ResultRows, finish_results, result_layout, with_time
from nilometer.errors import UnknownNameError
from nilometer.local.read_source import read_source
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.model.expressions import Expression
from nilometer.operators.source_reader import SourceReader
from nilometer.operators.stage import Stage
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.physical.join_places import build_stage
from nilometer.sql.physical.stages import PlannedStage, StreamInput, cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan
from nilometer.sql.plan.join_plan import JoinPlan, Source
from nilometer.sql.sensor_conditions import row_condition, sensor_condition
from nilometer.sql.utility import compile_utility


@dataclass(frozen=True)
class Feed:
    """What one stream of a stage reads from a log."""

    stage: int
    stream: int
    relation: str
    reader: SourceReader
    where: str | None
    """For a sensor table: the condition on static columns that selects the rows it reads."""
    needs: str | None
    """The same for the sensors to contact."""
    utility: Expression | None
    """What a row is worth when not all can be read; None: all are worth the same."""


@dataclass(frozen=True)
class PlanPart:
    """The stages that produce results, each after those that send to it."""

    stages: tuple[Stage, ...]
    sends: tuple[tuple[int, int] | None, ...]
    """The stage and stream to which each sends; None: it emits results."""
    feeds: tuple[Feed, ...]
    held: tuple[tuple[int, int, pa.RecordBatch, pa.Array | None], ...]
    """Stage, stream and rows of static tables, and which rows are selected."""
    rows: ResultRows


@dataclass(frozen=True)
class EnginePlan:
    """A query that an engine runs beside others; several parts are combined by UNION ALL."""

    parts: tuple[PlanPart, ...]
    layout: LogLayout
    """The log of the results."""
    description: dict[str, Any]
    """The identity of this query; its state is for no other."""

    @property
    def feeds(self) -> list[Feed]:
        """The feeds of all parts."""
        return [feed for part in self.parts for feed in part.feeds]

    @property
    def needs_now(self) -> bool:
        """Whether a stage needs the times of micro-batches."""
        return any(stage.needs_now for part in self.parts for stage in part.stages)


@dataclass(frozen=True)
class OpenedFeed:
    """A feed, the log that it reads, and the offset to start from if it has read nothing yet."""

    feed: Feed
    log: str
    start: Position
    name: str
    """The reader name under which the log stores the offset."""
    layout: LogLayout
    """The columns that the plan knows; the log may have changed since."""


@dataclass(frozen=True)
class HostedPlan:
    """A plan with all that a bucket needs to run it."""

    plan: EnginePlan
    feeds: tuple[OpenedFeed, ...]
    """In the order of `plan.feeds`."""
    compression: str | None
    """The compression of the results."""
    dead_letters: str | None
    """The log of dead letters; None: a row that cannot be computed fails the query."""
    shed_above: int | None = None
    """When more rows of a log wait than this, only some of them are read; None: always all."""


def make_plan(
    plan: Plan, tables: Mapping[str, pa.RecordBatch], shed_by: str | None = None
) -> EnginePlan:
    """The engine plan of a plan made for one bucket; static tables are given by name.

    `shed_by` is what rows are worth when not all can be read. Raises NotInSubsetError if only
    Spark can compute part of it.
    """
    plan = with_time(plan)
    finished = finish_results(plan)
    parts, described = [], []
    utilities = _Utilities(shed_by)
    for one, rows in finished.parts:
        if isinstance(one, ChangesPlan):
            staged = cut_into_stages(one)
            stages, about = staged.stages, describe_changes(staged)
        else:
            stage = build_stage(one)
            inputs = tuple(StreamInput(one, number) for number in range(len(one.sources)))
            stages, about = (PlannedStage(stage, inputs),), describe_join(one, stage)
        parts.append(_part(stages, rows, tables, utilities))
        described.append(about)
    description = described[0] if len(described) == 1 else {"parts": described}
    utilities.require_one()
    return EnginePlan(tuple(parts), result_layout(finished.schema, plan), description)


@dataclass
class _Utilities:
    """What rows are worth; those of a stream without the columns needed are worth the same."""

    text: str | None
    compiled: int = 0
    unknown: UnknownNameError | None = None

    def of(self, source: Source, plan: JoinPlan) -> Expression | None:
        if self.text is None:
            return None
        try:
            utility = compile_utility(self.text, plan.catalog, source.relation)
        except UnknownNameError as error:
            self.unknown = error
            return None
        self.compiled += 1
        return utility

    def require_one(self) -> None:
        """Raise an error if no stream has the columns of the expression."""
        if self.unknown is not None and not self.compiled:
            raise self.unknown


def _part(
    stages: tuple[PlannedStage, ...],
    rows: ResultRows,
    tables: Mapping[str, pa.RecordBatch],
    utilities: _Utilities,
) -> PlanPart:
    feeds, held = [], []
    for number, planned in enumerate(stages):
        if planned.overhears:
            raise NotInSubsetError("a stream that may be idle is not available")
        for stream, stage_input in enumerate(planned.inputs):
            if not isinstance(stage_input, StreamInput):
                continue
            plan, source = stage_input.plan, stage_input.plan.sources[stage_input.source]
            reader = read_source(plan, source)
            table = _rows_of(source, tables)
            if table is not None:
                held.append((number, stream, *reader.read(table, None)))
            else:
                utility = utilities.of(source, plan)
                feeds.append(_feed(number, stream, plan, source, reader, utility))
    sends = [None if s.to_stage is None else (s.to_stage, s.to_stream) for s in stages]
    return PlanPart(
        tuple(one.stage for one in stages), tuple(sends), tuple(feeds), tuple(held), rows
    )


def _rows_of(source: Source, tables: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch | None:
    if source.relation.rows is not None:
        return source.relation.rows
    return tables.get(source.relation.name)


def _feed(
    stage: int,
    stream: int,
    plan: JoinPlan,
    source: Source,
    reader: SourceReader,
    utility: Expression | None,
) -> Feed:
    where, needs = row_condition(plan, source), sensor_condition(plan, source)
    return Feed(stage, stream, source.relation.name, reader, where, needs, utility)
