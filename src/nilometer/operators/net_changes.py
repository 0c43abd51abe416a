"""Combine changes of equal rows at equal instants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.gather import Gatherer
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.timeline import run_timeline
from nilometer.operators.change_operator import diffs_of, make_changes, row_columns, times_of


def net_changes(changes: pa.RecordBatch) -> pa.RecordBatch:
    """One change for each row and instant, and none where changes cancel each other."""
    groups = row_groups(row_columns(changes), len(changes))
    nothing = np.zeros(len(groups), np.int64)
    line = run_timeline(groups.numbers, times_of(changes), [diffs_of(changes)], [nothing])
    diffs = line.after[0] - line.before[0]
    some = np.flatnonzero(diffs)
    rows = groups.firsts[line.groups[some]]
    return make_changes(shown_rows([changes], rows), line.times[some], diffs[some])


def shown_rows(inputs: Sequence[pa.RecordBatch], rows: Int64s) -> list[pa.Array]:
    """The rows of changes as they are emitted, the inputs' rows numbered from zero.

    Among equal rows any one may be taken.
    """
    columns = range(inputs[0].num_columns - 2)
    return [canonical(column) for column in Gatherer(inputs).columns(columns, rows)]
