"""A plan over logs and static frames as a query of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from nilometer.engine.plan import EnginePlan, HostedPlan, OpenedFeed, make_plan
from nilometer.errors import InputError
from nilometer.kernels.arrays import as_type
from nilometer.spark.inputs import Inputs, ReaderNames
from nilometer.spark.log_cursor import LogCursor, LogRange
from nilometer.sql.catalog import Relation
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.plan.changes_plan import Plan, sources_of


def engine_plan(plan: Plan, inputs: Inputs, shed_by: str | None = None) -> EnginePlan:
    """The plan for an engine; raises NotInSubsetError, with the reason, if it needs Spark."""
    tables = _tables(plan, inputs)
    without_rows = make_plan(plan, _without_rows(tables), shed_by)  # before any rows are read
    if not tables:
        return without_rows
    rows = {one.name: _typed(frame.toArrow(), one) for one, frame in tables}
    return make_plan(plan, rows, shed_by)


def where_it_runs(plan: Plan, inputs: Inputs) -> str | None:
    """Where a query of this plan would run as a named query, in words; None if it reads no log."""
    if not any(one.relation.name in inputs.logs for one in sources_of(plan)):
        return None
    try:
        make_plan(plan, _without_rows(_tables(plan, inputs)))
    except NotInSubsetError as error:
        return f"as a named query, it would have its own Spark streaming query: {error.message}"
    return "as a named query, it would run in the shared engine"


def _tables(plan: Plan, inputs: Inputs) -> list[tuple[Relation, DataFrame]]:
    """The static tables of a plan whose rows Spark has."""
    relations = {one.relation.name: one.relation for one in sources_of(plan)}
    tables = []
    for name, relation in relations.items():
        if name in inputs.logs or relation.rows is not None:
            continue
        frame = inputs.frames[name]
        if frame.isStreaming:
            raise NotInSubsetError(f"{name} is a streaming DataFrame, which Spark reads")
        tables.append((relation, frame))
    return tables


def _without_rows(tables: Sequence[tuple[Relation, DataFrame]]) -> dict[str, pa.RecordBatch]:
    return {
        one.name: _typed(pa.table({name: [] for name in one.columns}), one) for one, _ in tables
    }


def _typed(table: pa.Table, relation: Relation) -> pa.RecordBatch:
    columns = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        column = table.column(name).combine_chunks()
        columns.append(pa.nulls(len(table)) if kind is None else as_type(column, kind))
    return pa.RecordBatch.from_arrays(columns, list(relation.columns))


def open_feeds(plan: EnginePlan, logs: Mapping[str, LogRange]) -> tuple[OpenedFeed, ...]:
    """Open the feeds of a plan; from now on the logs keep what it has not read."""
    names = ReaderNames()
    opened = []
    for feed in plan.feeds:
        log = logs[feed.relation]
        name = names.next(log)
        if name is None:
            raise InputError("a query of an engine must have a name")
        start = LogCursor(log.read_by(name, feed.where, feed.needs)).initial()
        opened.append(OpenedFeed(feed, log.location, start, name, log.layout))
    return tuple(opened)


def host_plan(
    plan: EnginePlan,
    logs: Mapping[str, LogRange],
    dead_letters: str | None,
    shed_above: int | None,
) -> HostedPlan:
    """The plan with everything that a bucket needs."""
    return HostedPlan(plan, open_feeds(plan, logs), "zstd", dead_letters, shed_above)
