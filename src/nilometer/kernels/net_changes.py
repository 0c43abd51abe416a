"""Adds up changes of an answer: the result is the rows that hold, with their counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.row_groups import row_groups


def net_changes(rows: pa.Table, copies: Int64s) -> tuple[pa.Table, Int64s]:
    """The distinct rows whose copies do not cancel out, in order of first appearance.

    >>> table, copies = net_changes(pa.table({"v": [1, 2, 1]}), np.array([1, 2, -1]))
    >>> table.column("v").to_pylist(), copies.tolist()
    ([2], [2])
    """
    groups = row_groups(list(_whole(rows)), rows.num_rows)
    sums = np.zeros(len(groups), np.int64)
    np.add.at(sums, groups.numbers, copies)
    nonzero = np.flatnonzero(sums)
    nonzero = nonzero[np.argsort(groups.firsts[nonzero])]
    return rows.take(pa.array(groups.firsts[nonzero])).combine_chunks(), sums[nonzero]


def _whole(rows: pa.Table) -> Iterator[pa.Array]:
    for column in rows.columns:
        whole = column.combine_chunks()
        yield whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
