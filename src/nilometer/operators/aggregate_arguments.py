"""The arguments of aggregates: the values added and removed, and in which states of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.arrays import Int64s, validity
from nilometer.kernels.gather import take
from nilometer.kernels.group_instants import GroupInstants
from nilometer.kernels.row_groups import group_ids
from nilometer.kernels.row_ids import RowIds, identify_rows
from nilometer.kernels.timeline import run_timeline
from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.share import ROUTE

_COPIES = "copies"


@dataclass(frozen=True, slots=True)
class ArgumentRef:
    """A column whose values in a group count as often as they occur, or once."""

    column: int
    distinct: bool

    @property
    def label(self) -> str:
        """The name of its state."""
        return f"{self.column} distinct" if self.distinct else f"{self.column}"


@dataclass(frozen=True)
class GroupedChanges:
    """The changes of a period, and the states of groups in it."""

    columns: Sequence[pa.Array]
    times: Int64s
    diffs: Int64s
    groups: Int64s
    """The group of each change."""
    ids: RowIds
    """Of each group."""
    instants: GroupInstants
    """The states, which may begin before the changes: for a row that has always held."""

    @cached_property
    def states(self) -> Int64s:
        """The state that begins with each change."""
        return self.instants.states[: len(self.times)]

    @cached_property
    def order(self) -> Int64s:
        """The changes ordered by their states."""
        order = self.instants.order
        return order if len(order) == len(self.times) else order[order < len(self.times)]


@dataclass(frozen=True)
class ArgumentEvents:
    """Values added and removed, none of them NULL, ordered by states."""

    states: Int64s
    groups: Int64s
    diffs: Int64s
    values: pa.Array

    def as_type(self, kind: pa.DataType) -> ArgumentEvents:
        """The same events with values of another type, rounded to the nearest one."""
        if self.values.type == kind:
            return self
        return replace(self, values=as_type(self.values, kind))


def argument_of(call: AggregateCall) -> ArgumentRef:
    """The argument of a call; duplicates do not matter for extremes."""
    assert call.column is not None
    extreme = call.function in (AggregateFunction.MIN, AggregateFunction.MAX)
    return ArgumentRef(call.column, call.distinct and not extreme)


def argument_events(period: GroupedChanges, column: int) -> ArgumentEvents:
    """All values of a column that are added and removed."""
    order = period.order
    valid = validity(period.columns[column])
    return _events(period, column, order if valid is None else order[valid[order]], period.diffs)


def distinct_events(
    period: GroupedChanges, column: int, table: GroupTable | None, route: Int64s | None
) -> ArgumentEvents:
    """The values of a column whose first copy in a group is added, or whose last is removed.

    The table holds how many copies of each value each group has, and is updated;
    without one, groups had nothing before. `route` has the routes of the groups.
    """
    valid = validity(period.columns[column])
    rows = np.arange(len(period.times)) if valid is None else np.flatnonzero(valid)
    groups = period.groups[rows]
    own = [pa.array(period.ids.h1[groups]), pa.array(period.ids.h2[groups])]
    pairs = group_ids(identify_rows([*own, take(period.columns[column], rows)], len(rows)))
    known = {} if table is None else table.lookup(pairs.ids)
    copies = known.get(_COPIES, np.zeros(len(pairs), np.int64))
    line = run_timeline(pairs.numbers, period.times[rows], [period.diffs[rows]], [copies])
    changes = (line.after[0] > 0).astype(np.int64) - (line.before[0] > 0)
    if table is not None:
        left = line.after[0][line.lasts]
        values = {_COPIES: left}
        if route is not None:
            values[ROUTE] = np.where(left != 0, route[groups[pairs.firsts]], 0)
        table.update(Groups(pairs.ids, [], values))
    diffs = np.zeros(len(period.times), np.int64)
    diffs[rows[line.order[line.ends]]] = changes
    order = period.order
    return _events(period, column, order[diffs[order] != 0], diffs)


def _events(period: GroupedChanges, column: int, places: Int64s, diffs: Int64s) -> ArgumentEvents:
    return ArgumentEvents(
        period.states[places],
        period.groups[places],
        diffs[places],
        take(period.columns[column], places),
    )
