"""A plan over logs and static frames as a query of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from nilometer.engine.plan import EnginePlan, HostedPlan, OpenedFeed, make_plan
from nilometer.errors import InputError
from nilometer.kernels.arrays import as_type
from nilometer.spark.log_cursor import LogCursor
from nilometer.spark.log_stream import LogStream, ReaderNames, StreamFrame
from nilometer.sql.catalog import Relation
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.plan.changes_plan import Plan, sources_of


def engine_plan(
    plan: Plan, frames: Mapping[str, StreamFrame], shed_by: str | None = None
) -> EnginePlan:
    """The plan for an engine; raises NotInSubsetError, with the reason, if it needs Spark."""
    tables = _no_rows(plan, frames)
    made = make_plan(plan, tables, shed_by)  # before any rows are read
    return make_plan(plan, _static_rows(plan, frames), shed_by) if tables else made


def where_it_runs(plan: Plan, frames: Mapping[str, StreamFrame]) -> str | None:
    """Where a query of this plan would run as a named query, in words; None if it reads no log."""
    if not any(isinstance(frames[one.relation.name], LogStream) for one in sources_of(plan)):
        return None
    try:
        make_plan(plan, _no_rows(plan, frames))
    except NotInSubsetError as error:
        return f"as a named query, it would have its own Spark streaming query: {error.message}"
    return "as a named query, it would run in the shared engine"


def _no_rows(plan: Plan, frames: Mapping[str, StreamFrame]) -> dict[str, pa.RecordBatch]:
    """The static tables of a plan, without their rows."""
    found = {}
    for source in sources_of(plan):
        frame, relation = frames[source.relation.name], source.relation
        if isinstance(frame, LogStream) or relation.rows is not None:
            continue
        if frame.isStreaming:
            raise NotInSubsetError(f"{relation.name} is a streaming DataFrame, which Spark reads")
        found[relation.name] = _typed(pa.table({name: [] for name in relation.columns}), relation)
    return found


def _static_rows(plan: Plan, frames: Mapping[str, StreamFrame]) -> dict[str, pa.RecordBatch]:
    found = {}
    for source in sources_of(plan):
        relation = source.relation
        frame = frames[relation.name]
        known = isinstance(frame, LogStream) or relation.rows is not None
        if not known and relation.name not in found:
            found[relation.name] = _typed(frame.toArrow(), relation)  # type: ignore[union-attr]
    return found


def _typed(table: pa.Table, relation: Relation) -> pa.RecordBatch:
    columns = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        column = table.column(name).combine_chunks()
        columns.append(pa.nulls(len(table)) if kind is None else as_type(column, kind))
    return pa.RecordBatch.from_arrays(columns, list(relation.columns))


def open_feeds(plan: EnginePlan, frames: Mapping[str, StreamFrame]) -> tuple[OpenedFeed, ...]:
    """Open the feeds of a plan; from now on the logs keep what it has not read."""
    names = ReaderNames()
    found = []
    for feed in plan.feeds:
        log = frames[feed.relation]
        assert isinstance(log, LogStream)
        name = names.next(log)
        if name is None:
            raise InputError("a query of an engine must have a name")
        given = replace(log, begins_now=False).range_for(name, feed.where, feed.needs)
        start = LogCursor(given).initial()
        found.append(OpenedFeed(feed, log.location, start, name, log.layout))
    return tuple(found)


def host_plan(
    plan: EnginePlan,
    frames: Mapping[str, StreamFrame],
    dead_letters: str | None,
    shed_above: int | None,
) -> HostedPlan:
    """The plan with everything that a bucket needs."""
    return HostedPlan(plan, open_feeds(plan, frames), "zstd", dead_letters, shed_above)
