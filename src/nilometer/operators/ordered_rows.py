"""The rows of a stream in the order in which OVER and MATCH_RECOGNIZE process them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.chunk import Kernel, RowLayout, make_chunk
from nilometer.kernels.order_codes import joint_codes, order_codes
from nilometer.kernels.row_groups import RowGroups, row_groups
from nilometer.operators.change_operator import diffs_of, make_changes, row_columns, times_of
from nilometer.operators.stream_buffer import StreamBuffer


@dataclass(frozen=True)
class OrderedRows:
    """Rows ordered by partition, time and content."""

    columns: list[pa.Array]
    times: Int64s
    is_open: Bools
    """The rows whose output is still due."""
    groups: RowGroups
    numbers: Int64s
    """The partition of each row."""
    starts: Int64s
    """For each row, the first of its partition."""
    lasts: Int64s
    """For each row, the last of its partition."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def places(self) -> Int64s:
        return np.arange(len(self.times))

    @property
    def begins_instant(self) -> Bools:
        """Which rows are the first of their instants."""
        begins = np.ones(len(self), np.bool_)
        begins[1:] = (np.diff(self.times) != 0) | (np.diff(self.numbers) != 0)
        return begins


def in_order(rows: pa.RecordBatch, keys: Sequence[int], passed: int) -> OrderedRows:
    """Changes in order; rows of one instant by their first `passed` columns, NULLs first."""
    columns, times, is_open = row_columns(rows), times_of(rows), diffs_of(rows) > 0
    groups = row_groups([columns[place] for place in keys], len(rows))
    codes = [order_codes(column) for column in columns[:passed]]
    order = np.lexsort((joint_codes(codes, len(rows)), times, groups.numbers))
    numbers = groups.numbers[order]
    firsts = np.searchsorted(numbers, np.arange(len(groups)))
    ends = np.searchsorted(numbers, np.arange(len(groups)), "right") - 1
    taken = pa.array(order)
    return OrderedRows(
        [column.take(taken) for column in columns],
        times[order],
        is_open[order],
        groups,
        numbers,
        firsts[numbers],
        ends[numbers],
    )


def keep_in_order(
    buffer: StreamBuffer, rows: OrderedRows, more: Sequence[Int64s], keep: Int64s, is_open: Bools
) -> None:
    """Keep only some rows, with more columns; equal rows stay in order."""
    keep = keep[np.argsort(rows.times[keep], kind="stable")]
    columns = [column.take(pa.array(keep)) for column in rows.columns]
    columns += [pa.array(one[keep]) for one in more]
    left = make_changes(columns, rows.times[keep], is_open[keep].astype(np.int64))
    layout = RowLayout(len(columns), ())
    buffer.replace([make_chunk(left, layout, Kernel.MERGE)] if len(left) else [])
