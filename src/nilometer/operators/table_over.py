"""OVER of rows that are complete at once: a value for every row from it and those around it.

Rows of static tables have always held; those of time windows come and go at one instant. So
there is no state, and windows may look both ways, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.expression_types import common_type, is_integer
from nilometer.kernels.net_changes import net_changes
from nilometer.kernels.order_codes import NULL_CODE, joint_codes, order_codes
from nilometer.operators.change_operator import (
    StoredChunks,
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.change_specs import AggregateCall
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.framed_aggregates import aggregate_frames


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A column that rows are ordered by."""

    column: int
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class TableFrame:
    """Rows from one to another, counted from each; None: as far as its partition goes.

    By values of the one column that rows are ordered by, it is those that are so much smaller or
    larger at most, in microseconds if they are times; 0 are those that the order leaves together.
    """

    first: int | float | None = None
    last: int | float | None = 0
    by_rows: bool = False

    @property
    def has_lengths(self) -> bool:
        """Whether it is bounded by values, beyond equal ones."""
        return not self.by_rows and bool(self.first or self.last)


@dataclass(frozen=True, slots=True)
class Ranked:
    """ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST or NTILE."""

    kind: str
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Shifted:
    """LAG, or LEAD if steps are negative: a column some rows before."""

    column: int
    steps: int
    default: int | None = None
    ignores_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Nth:
    """A value of a frame: the n-th from its beginning, or (-1) its last."""

    column: int
    number: int
    ignores_nulls: bool = False


TableFunction: TypeAlias = Ranked | Shifted | Nth | AggregateCall


@dataclass(frozen=True)
class TableWindow:
    """A window function of every row: over an ordered partition, or a frame in it."""

    function: TableFunction
    partition: tuple[int, ...]
    order: tuple[OrderTerm, ...]
    frame: TableFrame


@dataclass(frozen=True)
class TableOverSpec:
    """OVER of rows: columns that pass first, then the inputs of the windows."""

    windows: tuple[TableWindow, ...]
    passed: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> OverTable:
        return OverTable(self, store)


class OverTable:
    """A running OVER of rows that are complete at once."""

    def __init__(self, spec: TableOverSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._store = store

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return ()

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """All results, appended to the rows themselves."""
        del frontier
        (new,) = inputs
        if not len(new):
            return no_changes(self._spec.types)
        rows, counts = net_changes(pa.Table.from_batches([new]).drop(["_diff"]), diffs_of(new))
        every = np.repeat(np.arange(len(rows)), np.abs(counts))
        whole = rows.take(pa.array(every)).combine_chunks().to_batches()
        if not whole:
            return no_changes(self._spec.types)
        changes = whole[0].append_column("_diff", pa.array(np.sign(counts)[every]))
        columns = row_columns(changes)
        passed = columns[: self._spec.passed]
        kinds = self._spec.types[self._spec.passed :]
        together = np.stack([times_of(changes), diffs_of(changes)])
        results = [
            _Sorted.of(columns, one, self._spec.passed, together).values(self._store).cast(kind)
            for one, kind in zip(self._spec.windows, kinds, strict=True)
        ]
        return make_changes([*passed, *results], times_of(changes), diffs_of(changes))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""


@dataclass(frozen=True)
class _Sorted:
    """The rows in the order of a window: by partition, then by its terms, then by all columns."""

    columns: Sequence[pa.Array]
    window: TableWindow
    order: Int64s
    starts: Int64s
    """For each position, the first of its partition."""
    ends: Int64s
    """For each position, the last of its partition."""
    begins: Bools
    """Which positions are the first among peers in the order."""

    @classmethod
    def of(
        cls, columns: Sequence[pa.Array], window: TableWindow, passed: int, together: Int64s
    ) -> _Sorted:
        """Given the columns, and by which numbers of them rows come or go together."""
        size = len(columns[0])
        own = [order_codes(columns[place]) for place in window.partition]
        parts = joint_codes([*own, *map(_ranks, together)], size)
        peers = joint_codes([_codes(columns[one.column], one) for one in window.order], size)
        ties = joint_codes([order_codes(column) for column in columns[:passed]], size)
        order = np.lexsort((ties, peers, parts))
        parts, peers = parts[order], peers[order]
        starts = np.searchsorted(parts, parts)
        ends = np.searchsorted(parts, parts, "right") - 1
        begins = np.ones(size, np.bool_)
        begins[1:] = (np.diff(parts) != 0) | (np.diff(peers) != 0)
        return cls(columns, window, order, starts, ends, begins)

    def values(self, store: ChunkStore) -> pa.Array:
        """The window's value for each row, in the order of the rows."""
        match self.window.function:
            case Ranked() as ranked:
                values = pa.array(self._ranked(ranked))
            case Shifted() as shifted:
                values = self._shifted(shifted)
            case Nth() as nth:
                values = self._nth(nth)
            case AggregateCall() as call:
                values = self._aggregate(call, store)
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        return values.take(pa.array(back))

    @property
    def _places(self) -> Int64s:
        return np.arange(len(self.order))

    @property
    def _peers(self) -> tuple[Int64s, Int64s]:
        """The first and the last position of the peers of each row."""
        firsts = np.flatnonzero(self.begins)
        number = np.cumsum(self.begins) - 1
        lasts = np.append(firsts[1:], len(self.order)) - 1
        return firsts[number], lasts[number]

    def _ranked(self, ranked: Ranked) -> Int64s | np.ndarray[tuple[int], np.dtype[np.float64]]:
        before, size = self._places - self.starts, self.ends - self.starts + 1
        first, last = self._peers
        match ranked.kind:
            case "ROW_NUMBER":
                return before + 1
            case "RANK":
                return first - self.starts + 1
            case "DENSE_RANK":
                groups: Int64s = np.cumsum(self.begins)
                return groups - groups[self.starts] + 1
            case "PERCENT_RANK":
                return np.where(size > 1, (first - self.starts) / np.maximum(size - 1, 1), 0.0)
            case "CUME_DIST":
                return (last - self.starts + 1) / size
        # NTILE: the first parts have one row more than the others
        base, more = size // ranked.parts, size % ranked.parts
        large = more * (base + 1)
        return np.where(
            before < large,
            before // (base + 1) + 1,
            more + (before - large) // np.maximum(base, 1) + 1,
        )

    def _column(self, place: int) -> pa.Array:
        return self.columns[place].take(pa.array(self.order))

    def _shifted(self, function: Shifted) -> pa.Array:
        column = self._column(function.column)
        if function.ignores_nulls:
            wanted, there = self._known_around(column, function.steps)
        else:
            wanted = self._places - function.steps
            there = (wanted >= self.starts) & (wanted <= self.ends)
        if function.default is None:
            return column.take(pa.array(wanted, mask=~there))
        default = self._column(function.default)
        kind = common_type(column.type, default.type)
        both = pa.concat_arrays([cast_values(column, kind), cast_values(default, kind)])
        return both.take(pa.array(np.where(there, wanted, len(column) + self._places)))

    def _known_around(self, column: pa.Array, steps: int) -> tuple[Int64s, Bools]:
        """The position n non-NULL values before or after each, and whether there is one."""
        valid = np.asarray(column.is_valid())
        known, until = np.flatnonzero(valid), np.concatenate([[0], np.cumsum(valid)])
        which = until[self._places + (steps < 0)] - steps - (steps < 0)
        there = (which >= until[self.starts]) & (which < until[self.ends + 1])
        return known[np.where(there, which, 0)] if len(known) else which, there

    def _nth(self, function: Nth) -> pa.Array:
        firsts, lasts = self._frames()
        column = self._column(function.column)
        if function.ignores_nulls:
            valid = np.asarray(column.is_valid())
            known = np.flatnonzero(valid)
            counts = np.concatenate([[0], np.cumsum(valid)])
            firsts, lasts = counts[firsts], counts[np.maximum(lasts + 1, firsts)] - 1
            column = column.take(pa.array(known))
        chosen = lasts if function.number < 0 else firsts + function.number - 1
        missing = (lasts < firsts) | (chosen > lasts)
        return column.take(pa.array(np.where(missing, 0, chosen), mask=missing))

    def _aggregate(self, call: AggregateCall, store: ChunkStore) -> pa.Array:
        firsts, lasts = self._frames()
        frames, mine = np.unique(
            np.stack([firsts, np.maximum(lasts + 1, firsts)]), axis=1, return_inverse=True
        )
        column = None if call.column is None else self._column(call.column)
        values = aggregate_frames(call, column, frames[0], frames[1], store)
        return values.take(pa.array(mine.ravel()))

    def _frames(self) -> tuple[Int64s, Int64s]:
        """The first and the last position of the frame of each row."""
        frame, (first, last) = self.window.frame, self._peers
        if frame.by_rows:
            first, last = self._places + int(frame.first or 0), self._places + int(frame.last or 0)
        elif frame.has_lengths:
            first, last = self._by_values(first, last)
        before, behind = self.starts - 1, self.ends + 1
        firsts = self.starts if frame.first is None else np.clip(first, self.starts, behind)
        lasts = self.ends if frame.last is None else np.clip(last, before, self.ends)
        return firsts, lasts

    def _by_values(self, firsts: Int64s, lasts: Int64s) -> tuple[Int64s, Int64s]:
        """Frames by values; those of NULL and NaN are their equals."""
        frame, (term,) = self.window.frame, self.window.order
        values, known = _as_numbers(self._column(term.column))
        if term.descending:
            values = -values
        firsts, lasts, places = firsts.copy(), lasts.copy(), np.flatnonzero(known)
        edges = np.flatnonzero(np.diff(self.starts[places])) + 1
        for mine in np.split(places, edges) if len(places) else ():
            own = values[mine]
            firsts[mine] = mine[0] + np.searchsorted(own, _plus(own, frame.first or 0))
            lasts[mine] = mine[0] + np.searchsorted(own, _plus(own, frame.last or 0), "right") - 1
        return firsts, lasts


def _as_numbers(column: pa.Array) -> tuple[np.ndarray[Any, Any], Bools]:
    """Values as numbers to add and compare, and which of them are numbers."""
    kind = column.type
    if pat.is_temporal(kind):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    elif is_integer(kind):
        column = column.cast(pa.int64())
    else:
        column = column.cast(pa.float64())
    known = np.asarray(column.is_valid())
    values = np.asarray(column.fill_null(0))
    return values, known & ~np.isnan(values)


def _plus(values: np.ndarray[Any, Any], length: int | float) -> np.ndarray[Any, Any]:
    """Values plus a length; whole numbers saturate."""
    if values.dtype != np.int64:
        return values + length
    length = floor(length) if length > 0 else ceil(length)
    bounds, sums = np.iinfo(np.int64), values.copy()
    length = max(min(length, bounds.max), -bounds.max)
    if length > 0:
        np.minimum(sums, bounds.max - length, out=sums)
    else:
        np.maximum(sums, bounds.min - length, out=sums)
    return sums + length


def _ranks(numbers: Int64s) -> Int64s:
    ranks: Int64s = np.unique(numbers, return_inverse=True)[1]
    return ranks


def _codes(column: pa.Array, term: OrderTerm) -> Int64s:
    """Numbers that compare as a term of ORDER BY requires."""
    codes = order_codes(column)
    above = int(codes.max(initial=0)) + 1
    ordered = above - codes if term.descending else codes
    nulls = above + 1 if term.nulls_last else 0
    result: Int64s = np.where(codes == NULL_CODE, nulls, ordered)
    return result
