"""Turn the rows of groups in all their states into changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.equality import equal_rows
from nilometer.kernels.gather import take
from nilometer.kernels.group_instants import GroupInstants
from nilometer.kernels.row_errors import Rows, compute, leave_out, passing
from nilometer.model.expressions import Expression
from nilometer.operators.change_operator import make_changes


@dataclass(frozen=True)
class GroupStates:
    """The states of groups, with their results."""

    keys: Sequence[pa.Array]
    """One for each group."""
    results: Sequence[pa.Array]
    """The results of the calls, in each state."""
    exists: Bools
    """The states in which there is a row."""

    def leave_out(
        self, bad: Bools, error: PredicateError, instants: GroupInstants, names: Sequence[str]
    ) -> None:
        """Drop the row in states whose results cannot be computed; or raise the error."""
        keys = [take(canonical(key), instants.groups) for key in self.keys]
        rows = Rows(keys, len(instants), names, counted=_is_new(instants))
        leave_out(bad & self.exists, error, rows)
        self.exists[bad] = False


def answer_changes(
    instants: GroupInstants,
    answer: GroupStates,
    test: Expression | None,
    values: Sequence[tuple[Expression, pa.DataType]],
    names: Sequence[str],
) -> pa.RecordBatch:
    """The changes of rows that pass a test, with values computed from keys and results."""
    shown = np.flatnonzero(answer.exists)
    columns = [take(canonical(key), instants.groups[shown]) for key in answer.keys]
    columns += [_only(result, shown) for result in answer.results]
    is_new = _is_new(instants)
    if test is not None:
        inputs = Rows(columns, len(shown), names, counted=is_new[shown])
        passed = np.flatnonzero(passing(test, inputs))
        columns = [_only(column, passed) for column in columns]
        shown = shown[passed]
    inputs = Rows(columns, len(shown), names, counted=is_new[shown])
    computed, computable = compute(values, inputs)
    rows = [canonical(value) for value in computed]
    if computable is not None:
        shown = shown[computable]
    gone, come, states = _differences(instants, rows, shown)
    diffs = np.concatenate([np.full(len(gone), -1), np.ones(len(come), np.int64)])
    places = np.concatenate([gone, come])
    return make_changes([take(row, places) for row in rows], instants.times[states], diffs)


def _differences(
    instants: GroupInstants, rows: Sequence[pa.Array], shown: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Rows retracted and rows added, in this order, each with its state."""
    places = np.full(len(instants), -1)
    places[shown] = np.arange(len(shown))
    states = np.flatnonzero(_is_new(instants))
    before, after = places[states - 1], places[states]
    differs = (before >= 0) != (after >= 0)
    both = np.flatnonzero((before >= 0) & (after >= 0))
    differs[both] = ~_as_before(rows, len(shown))[after[both]]
    gone, come = differs & (before >= 0), differs & (after >= 0)
    return before[gone], after[come], np.concatenate([states[gone], states[come]])


def _is_new(instants: GroupInstants) -> Bools:
    """Which states are not the initial states of their groups."""
    later = np.ones(len(instants), np.bool_)
    later[instants.firsts] = False
    return later


def _as_before(rows: Sequence[pa.Array], size: int) -> Bools:
    """Which rows are equal to the row before them."""
    same = np.ones(size, np.bool_)
    for column in rows:
        same[1:] &= equal_rows(column.slice(0, max(size - 1, 0)), column.slice(1))
    return same


def _only(column: pa.Array, places: Int64s) -> pa.Array:
    return column if len(places) == len(column) else take(column, places)
