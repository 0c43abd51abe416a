"""Admission of rows: their times are read, and those that can join nothing are dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, as_bools, as_int64, validity
from nilometer.kernels.chunk import RowLayout
from nilometer.model.time import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class Punctuation:
    """What the rest of the query learns from rows, whether they are kept or not."""

    largest: int | None = None
    """The largest timestamp of all rows, including those that a selection or a NULL key removes."""
    rows: int = 0
    without_time: int = 0
    """Rows dropped because their time is NULL, before the year 1700 or after 9999; or their end."""
    largest_kept: int | None = None
    """The largest timestamp of the rows that are kept."""
    watermark: int | None = None
    """The watermark of the rows' log: no row before it will arrive later."""

    def __add__(self, other: Punctuation) -> Punctuation:
        return Punctuation(
            _largest(self.largest, other.largest),
            self.rows + other.rows,
            self.without_time + other.without_time,
            _largest(self.largest_kept, other.largest_kept),
            _largest(self.watermark, other.watermark),
        )


def admit(
    rows: pa.RecordBatch,
    layout: RowLayout,
    selected: pa.Array | None,
    keep_null_keys: bool = False,
    end: int | None = None,
) -> tuple[pa.RecordBatch, Punctuation]:
    """The rows that may join something, and the time information of all rows.

    A row without a time is dropped and counted, and so is one whose `end`, if there is such a
    column, is NULL or lies before its time. A row that the selection rejects (False or NULL)
    or that has a NULL in a key is dropped, but its time counts; in a stream with a ROWS window
    NULL keys are kept, because their rows count there.
    """
    timed = _with_time(rows, layout)
    times = layout.times(rows)
    if end is not None:
        timed = _both(timed, _both(validity(rows.column(end)), as_int64(rows.column(end)) >= times))
    seen = times if timed is None else times[timed]
    size, largest = len(rows), int(seen.max()) if len(seen) else None
    keep = timed if selected is None else _both(timed, as_bools(selected))
    if not keep_null_keys:
        for place in layout.key_columns:
            keep = _both(keep, validity(rows.column(place)))
    if keep is not None and not keep.all():
        rows = rows.take(pa.array(np.flatnonzero(keep)))
        times = layout.times(rows)
    largest_kept = int(times.max()) if len(times) else None
    return rows, Punctuation(largest, size, size - len(seen), largest_kept)


def largest_time(column: pa.Array) -> int | None:
    """The largest time that rows can have, if any row has one."""
    valid = validity(column)
    times = as_int64(column) if valid is None else as_int64(column)[valid]
    times = times[(times >= EARLIEST) & (times <= LATEST)]
    return int(times.max()) if len(times) else None


def count_without_time(column: pa.Array, end: pa.Array | None = None) -> int:
    """How many rows have no time, or an end that is NULL or before it."""
    times = as_int64(column)
    timed = _both(validity(column), (times >= EARLIEST) & (times <= LATEST))
    if end is not None:
        timed = _both(timed, _both(validity(end), as_int64(end) >= times))
    return 0 if timed is None else int(np.count_nonzero(~timed))


def drop_late(
    rows: pa.RecordBatch, layout: RowLayout, watermark: int
) -> tuple[pa.RecordBatch, int]:
    """The rows that are not strictly earlier than a watermark, and how many others there were."""
    times = layout.times(rows)
    if not len(times) or times.min() >= watermark:
        return rows, 0
    in_time = np.flatnonzero(times >= watermark)
    return rows.take(pa.array(in_time)), len(times) - len(in_time)


def _largest(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return max(left, right)


def _with_time(rows: pa.RecordBatch, layout: RowLayout) -> Bools | None:
    valid = validity(rows.column(layout.time))
    times = layout.times(rows)
    if len(times) and (times.min() < EARLIEST or times.max() > LATEST):
        valid = _both(valid, (times >= EARLIEST) & (times <= LATEST))
    return valid


def _both(left: Bools | None, right: Bools | None) -> Bools | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right
