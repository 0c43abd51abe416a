"""The number of copies of each row, kept in a table of groups."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.errors import InternalError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.gather import take
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.timeline import Timeline, run_timeline
from nilometer.operators.change_operator import diffs_of, row_columns, times_of
from nilometer.operators.group_table import Groups, GroupTable

COPIES: Final = "n"
"""The name of the value that counts copies."""


def count_rows(table: GroupTable, changes: pa.RecordBatch) -> None:
    """Add changes to the counts of a table that keeps rows."""
    groups = row_groups(row_columns(changes), len(changes))
    initial = Groups(groups.ids, (), table.lookup(groups.ids)).value(COPIES)
    line = run_timeline(groups.numbers, times_of(changes), [diffs_of(changes)], [initial])
    check_counts(line, "ORDER BY")
    totals = line.after[0][line.lasts]
    changed = np.flatnonzero(totals != initial)
    firsts = groups.firsts[changed]
    rows = [canonical(take(column, firsts)) for column in row_columns(changes)]
    table.update(Groups(groups.ids.only(changed), rows, {COPIES: totals[changed]}))


def check_counts(line: Timeline, operator: str) -> None:
    """Check that no row is removed more often than it was added."""
    if any((counts < 0).any() for counts in line.after):
        raise InternalError(
            f"{operator} was told to remove rows that are not there",
            hint="please report this with the query",
        )


def move_rows(rows: Groups, source: GroupTable, target: GroupTable) -> None:
    """Move the counts of some rows to another table."""
    source.update(Groups(rows.ids, rows.keys, {}))
    target.update(rows)


def first_copies(ranks: Int64s, counts: Int64s, wanted: int) -> Bools:
    """The rows that hold the first n copies in an order without ties."""
    order = np.argsort(ranks)
    before = np.cumsum(counts[order]) - counts[order]
    chosen = np.empty(len(ranks), np.bool_)
    chosen[order] = before < wanted
    return chosen
