"""ROWS windows: until when rows are among the last n of a stream, or of their partition.

A row is in its window at an instant T if its time is <= T and fewer than n rows that come later
in the order have times <= T. So it is in the window from its own time until that of the n-th
later row, exclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import WindowError
from nilometer.kernels.arrays import Bools, Int64s, validity
from nilometer.kernels.chunk import Chunk, RowLayout
from nilometer.kernels.key_hashes import hash_rows
from nilometer.model.time import FOREVER

OPEN: Final = FOREVER
"""The end of a row that is still among the last n."""
OPEN_BUT_UNFIT: Final = -FOREVER
"""The same for a row that may never join, but counts: no result is early enough for it."""
_SPENT: Final = OPEN_BUT_UNFIT + 1
"""The end of such a row once it no longer counts."""
_COLUMN: Final = "_nilometer_until"


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """``[PARTITION BY partition ROWS count]``: the last rows of a stream, by places of columns."""

    count: int
    partition: tuple[int, ...]
    order: tuple[int, ...]
    """The columns that order rows of equal time: ascending, NULLs first."""
    selected: int | None
    """A BOOLEAN column: which rows may join. The others count, too."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise WindowError(
                f"a ROWS window must hold at least one row, got {self.count}",
                hint="write a positive number of rows",
            )


def window_ends(rows: pa.RecordBatch, times: Int64s, window: RowsWindow) -> Int64s:
    """For every row the time at which it leaves its window, OPEN if none of these rows ends it."""
    partition = _group_numbers([rows.column(c) for c in window.partition], len(rows))
    order = _in_order(rows, partition, times, window)
    ends = np.full(len(rows), OPEN)
    earlier, later = order[: -window.count], order[window.count :]
    ended = partition[earlier] == partition[later]
    ends[earlier[ended]] = times[later[ended]]
    return ends


def window_order(rows: pa.RecordBatch, times: Int64s, window: RowsWindow) -> Int64s:
    """The positions of rows in the order in which they enter a window without partitions."""
    assert not window.partition
    return _in_order(rows, np.zeros(len(rows), dtype=np.int64), times, window)


def slide(
    old: Sequence[Chunk], new: pa.RecordBatch, layout: RowLayout, window: RowsWindow
) -> tuple[tuple[Chunk, ...], pa.RecordBatch]:
    """Old chunks, their rows ended by new ones, and the new rows with a column of their ends.

    The layout is that of rows with ends. Every new row is strictly later than all old ones.
    """
    if len(new) == 0:
        return tuple(old), new
    places = [np.flatnonzero(_may_end(chunk, new, window)) for chunk in old]
    batches = [_take_open(chunk, at, layout) for chunk, at in zip(old, places, strict=True)]
    rows = pa.concat_batches([*batches, new])
    ends = window_ends(rows, layout.times(rows), window)
    *parts, own = np.split(ends, np.cumsum([len(at) for at in places]))
    changed = [
        _with_ends(chunk, layout, at, part)
        for chunk, at, part in zip(old, places, parts, strict=True)
    ]
    return tuple(changed), _append_ends(new, own, layout, window)


def _may_end(chunk: Chunk, new: pa.RecordBatch, window: RowsWindow) -> Bools:
    """The open rows of partitions that get new rows (or, rarely, have the same hash)."""
    may_end = is_open(_untils(chunk))
    if window.partition:
        mine, theirs = (
            hash_rows([rows.column(c) for c in window.partition]) for rows in (chunk.rows, new)
        )
        may_end &= np.isin(mine, theirs)
    return may_end


def _untils(chunk: Chunk) -> Int64s:
    assert chunk.until is not None
    return chunk.until


def _take_open(chunk: Chunk, places: Int64s, layout: RowLayout) -> pa.RecordBatch:
    assert layout.until is not None
    return chunk.rows.remove_column(layout.until).take(pa.array(places))


def _with_ends(chunk: Chunk, layout: RowLayout, places: Int64s, ends: Int64s) -> Chunk:
    """The chunk in which the open rows at these positions have these ends."""
    closed = ends != OPEN
    if not closed.any():
        return chunk
    places, ends = places[closed], ends[closed]
    until = _untils(chunk).copy()
    until[places] = np.where(until[places] == OPEN, ends, _SPENT)
    rows = chunk.rows.set_column(layout.until, _COLUMN, pa.array(until))
    return replace(chunk, rows=rows, until=until)


def _append_ends(
    rows: pa.RecordBatch, ends: Int64s, layout: RowLayout, window: RowsWindow
) -> pa.RecordBatch:
    unfit = ~fit_to_join(rows, layout.key_columns, window)
    ends[unfit] = np.where(ends[unfit] == OPEN, OPEN_BUT_UNFIT, _SPENT)
    return rows.append_column(_COLUMN, pa.array(ends))


def fit_to_join(rows: pa.RecordBatch, keys: Sequence[int], window: RowsWindow) -> Bools:
    """The rows that are selected and have no NULL in the given key columns."""
    fit = np.ones(len(rows), dtype=np.bool_)
    if window.selected is not None:
        fit &= rows.column(window.selected).fill_null(False).to_numpy(zero_copy_only=False)
    for key in keys:
        valid = validity(rows.column(key))
        fit = fit if valid is None else fit & valid
    return fit


def is_open(ends: Int64s) -> Bools:
    """Which rows are still among the last of their partition."""
    still_open: Bools = (ends == OPEN) | (ends == OPEN_BUT_UNFIT)
    return still_open


def _in_order(rows: pa.RecordBatch, partition: Int64s, times: Int64s, window: RowsWindow) -> Int64s:
    """Rows by partition, time, and then the order columns, which are read only where times tie."""
    order = np.lexsort((times, partition))
    tied = (np.diff(times[order]) == 0) & (np.diff(partition[order]) == 0)
    if not tied.any():
        return order
    places = np.flatnonzero(np.append(tied, False) | np.insert(tied, 0, False))
    chosen = order[places]
    columns = [rows.column(c).take(pa.array(chosen)) for c in window.order]
    ranks = [rank for column in columns for rank in _ranks(column)]
    again = np.lexsort((*reversed(ranks), times[chosen], partition[chosen]))
    order[places] = chosen[again]
    return order


def _group_numbers(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """A number for each row, the same for equal values, NULL being a value like any other."""
    numbers = np.zeros(rows, dtype=np.int64)
    for column in columns:
        for rank in _ranks(column):
            pairs = numbers * (int(rank.max(initial=0)) + 1) + rank
            numbers = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return numbers


def _ranks(column: pa.Array) -> list[Int64s]:
    """Arrays of dense ranks that order values like the column, NULLs first.

    Types without an order, such as maps, are ordered by hash: any order serves that does not depend
    on how the rows arrived.
    """
    kind = column.type
    if pat.is_struct(kind):
        present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
        return [present, *(rank for part in column.flatten() for rank in _ranks(part))]
    if pat.is_dictionary(kind):
        return _ranks(column.dictionary_decode())
    if pat.is_nested(kind):
        ranks = _dense(hash_rows([column]))
    elif pat.is_null(kind):
        ranks = np.zeros(len(column), dtype=np.int64)
    elif pat.is_floating(kind):
        ranks = _float_ranks(column)
    else:
        ranks = pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64)
    valid = validity(column)
    return [ranks if valid is None else np.where(valid, ranks, 0)]


def _float_ranks(column: pa.Array) -> Int64s:
    """-0.0 is 0.0, and NaN is larger than all numbers, as in numpy."""
    return _dense(np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float64))


def _dense(values: np.ndarray) -> Int64s:
    return np.unique(values, return_inverse=True)[1].astype(np.int64) + 1
