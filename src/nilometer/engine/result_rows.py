"""Converts results of plans to rows of a log, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from nilometer.errors import InputError, Place
from nilometer.kernels.arrays import as_type
from nilometer.local.run_query import ResultReader
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.expressions.scalars import RESULT_TIME, Scalar, column
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, UnionPlan, emits_changes
from nilometer.sql.plan.join_plan import Item, JoinPlan


class ResultRows(Protocol):
    """Converts the output of the last stage to rows of the log."""

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...


@dataclass(frozen=True)
class FinishedResults:
    """The plans whose results go to one log, each with the converter of its rows."""

    parts: tuple[tuple[JoinPlan | ChangesPlan, ResultRows], ...]
    schema: pa.Schema


def finish_results(plan: Plan) -> FinishedResults:
    """How a plan's results become rows; raises NotInSubsetError if only Spark can compute them."""
    if isinstance(plan, ChangesPlan):
        columns = [(one.name, one.kind) for one in plan.root.columns]
        added = {TIME: TIMESTAMP, DIFF: pa.int64()}
        schema = pa.schema([*columns, *((name, added[name]) for name in plan.added)])
        return FinishedResults(((plan, TypedRows(schema)),), schema)
    plans = plan.plans if isinstance(plan, UnionPlan) else (plan,)
    readers = [ResultReader(one) for one in plans]
    for one in plans:
        if one.after:
            raise NotInSubsetError("this condition is not available", place=one.after[0].place)
    schema = readers[0].schema
    if isinstance(plan, UnionPlan):
        kinds = [kind or field.type for kind, field in zip(plan.kinds, schema, strict=True)]
        schema = pa.schema(list(zip(schema.names, kinds, strict=True)))
    rows = [SelectedRows(reader, TypedRows(schema)) for reader in readers]
    return FinishedResults(tuple(zip(plans, rows, strict=True)), schema)


@dataclass(frozen=True)
class TypedRows:
    """Rows with the names and types of a log; columns that it lacks are left out."""

    schema: pa.Schema

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        shown = batch.columns[: len(self.schema)]
        columns = [as_type(c, f.type) for c, f in zip(shown, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class SelectedRows:
    """The select list of results, typed."""

    reader: ResultReader
    typed: TypedRows

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.typed.select(self.reader.select(batch))


def with_time(plan: Plan) -> Plan:
    """The plan whose results have their time as a column."""
    match plan:
        case UnionPlan():
            plans = tuple(_join_with_time(one) for one in plan.plans)
            more = len(plans[0].items) - len(plan.kinds)
            return UnionPlan(plans, (*plan.kinds, *(TIMESTAMP,) * more))
        case JoinPlan():
            return _join_with_time(plan)
        case _:
            return plan


def _join_with_time(plan: JoinPlan) -> JoinPlan:
    if any(item.name.lower() == TIME for item in plan.items):
        return plan
    time = Item(TIME, Scalar(column(RESULT_TIME), Place("", 0, 0)))
    return replace(plan, items=(*plan.items, time))


def result_layout(schema: pa.Schema, plan: Plan) -> LogLayout:
    """The log of a plan's results."""
    _require_distinct(schema.names)
    if schema.field(TIME).type != TIMESTAMP:
        raise InputError(
            f"a column of the results is named {TIME} and is not a time", hint="rename it with AS"
        )
    return LogLayout(schema, TIME, changes=emits_changes(plan))


def _require_distinct(names: Sequence[str]) -> None:
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise InputError(
                f"two columns of the results are named {name}",
                detail="the log of a query's results is read by the names of its columns",
                hint="rename one of them with AS",
            )
