"""The arguments of aggregates: which values come and go, in which states of groups."""

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

_COPIES = "copies"


@dataclass(frozen=True, slots=True)
class ArgumentRef:
    """A column, each value of a group taken as often as it is there, or once."""

    column: int
    distinct: bool

    @property
    def label(self) -> str:
        """A name for what is kept of it."""
        return f"{self.column} distinct" if self.distinct else f"{self.column}"


@dataclass(frozen=True)
class Period:
    """The changes of a period, and the states of groups in it."""

    columns: Sequence[pa.Array]
    times: Int64s
    diffs: Int64s
    groups: Int64s
    """The group of each change."""
    ids: RowIds
    """Of each group."""
    instants: GroupInstants
    """They may begin with more than the changes: what has a row since ever."""

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
    """Values that come and go, none of them NULL, ordered by states."""

    states: Int64s
    groups: Int64s
    diffs: Int64s
    values: pa.Array

    def as_type(self, kind: pa.DataType) -> ArgumentEvents:
        """The same events, their values in another type, to the nearest one there."""
        if self.values.type == kind:
            return self
        return replace(self, values=as_type(self.values, kind))


def argument_of(call: AggregateCall) -> ArgumentRef:
    """The argument of a call that has one; copies do not matter to extremes."""
    assert call.column is not None
    extreme = call.function in (AggregateFunction.MIN, AggregateFunction.MAX)
    return ArgumentRef(call.column, call.distinct and not extreme)


def argument_events(period: Period, column: int) -> ArgumentEvents:
    """All values of a column that come and go."""
    order = period.order
    valid = validity(period.columns[column])
    return _events(period, column, order if valid is None else order[valid[order]], period.diffs)


def distinct_events(period: Period, column: int, table: GroupTable | None) -> ArgumentEvents:
    """The values of a column that come to a group that had none such, or of which the last goes.

    The table knows how many copies of each value each group has, and is brought up to date;
    without one, groups had nothing before.
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
        table.update(Groups(pairs.ids, [], {_COPIES: line.after[0][line.lasts]}))
    diffs = np.zeros(len(period.times), np.int64)
    diffs[rows[line.order[line.ends]]] = changes
    order = period.order
    return _events(period, column, order[diffs[order] != 0], diffs)


def _events(period: Period, column: int, places: Int64s, diffs: Int64s) -> ArgumentEvents:
    return ArgumentEvents(
        period.states[places],
        period.groups[places],
        diffs[places],
        take(period.columns[column], places),
    )
