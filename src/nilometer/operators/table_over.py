"""OVER of static tables: something of every row and of those around it, in any order.

All rows hold since ever and come together, so nothing is kept, and windows may look both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.expression_types import common_type
from nilometer.kernels.net_changes import net_changes
from nilometer.kernels.order_codes import NULL_CODE, joint_codes, order_codes
from nilometer.operators.change_operator import (
    Stored,
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

    By values, 0 is the first or the last of the rows that the order leaves together.
    """

    first: int | None = None
    last: int | None = 0
    by_rows: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST or NTILE."""

    kind: str
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Shifted:
    """LAG, or LEAD if steps are negative: a column so many rows before."""

    column: int
    steps: int
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Nth:
    """A value of a frame: the n-th from its beginning, or (-1) its last."""

    column: int
    number: int
    ignores_nulls: bool = False


TableFunction: TypeAlias = Ranked | Shifted | Nth | AggregateCall


@dataclass(frozen=True)
class TableWindow:
    """What is said of every row: a function of a partition in an order, and of a frame in it."""

    function: TableFunction
    partition: tuple[int, ...]
    order: tuple[OrderTerm, ...]
    frame: TableFrame


@dataclass(frozen=True)
class TableOverSpec:
    """Of rows whose first columns pass; the others are what windows take."""

    windows: tuple[TableWindow, ...]
    passed: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> TableOver:
        return TableOver(self, store)


class TableOver:
    """A running OVER of static tables."""

    def __init__(self, spec: TableOverSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._store = store

    @property
    def stored(self) -> Sequence[Stored]:
        """Everything that it keeps in the store."""
        return ()

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """All results, with the rows themselves."""
        del frontier
        (new,) = inputs
        if not len(new):
            return no_changes(self._spec.types)
        rows, copies = net_changes(pa.Table.from_batches([new]).drop(["_diff"]), diffs_of(new))
        every = pa.array(np.repeat(np.arange(len(rows)), copies))
        whole = rows.take(every).combine_chunks().to_batches()
        if not whole:
            return no_changes(self._spec.types)
        changes = whole[0].append_column("_diff", pa.array(np.ones(len(every), np.int64)))
        columns = row_columns(changes)
        passed = columns[: self._spec.passed]
        kinds = self._spec.types[self._spec.passed :]
        said = [
            _Sorted.of(columns, one, self._spec.passed).say(self._store).cast(kind)
            for one, kind in zip(self._spec.windows, kinds, strict=True)
        ]
        return make_changes([*passed, *said], times_of(changes), diffs_of(changes))

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
    """Of each place, the first of its partition."""
    ends: Int64s
    """Of each place, the last of its partition."""
    begins: Bools
    """Which places are the first of those that the order leaves together."""

    @classmethod
    def of(cls, columns: Sequence[pa.Array], window: TableWindow, passed: int) -> _Sorted:
        size = len(columns[0])
        parts = joint_codes([order_codes(columns[place]) for place in window.partition], size)
        peers = joint_codes([_codes(columns[one.column], one) for one in window.order], size)
        ties = joint_codes([order_codes(column) for column in columns[:passed]], size)
        order = np.lexsort((ties, peers, parts))
        parts, peers = parts[order], peers[order]
        starts = np.searchsorted(parts, parts)
        ends = np.searchsorted(parts, parts, "right") - 1
        begins = np.ones(size, np.bool_)
        begins[1:] = (np.diff(parts) != 0) | (np.diff(peers) != 0)
        return cls(columns, window, order, starts, ends, begins)

    def say(self, store: ChunkStore) -> pa.Array:
        """What the window says of each row, in the order of the rows."""
        match self.window.function:
            case Ranked() as ranked:
                found = pa.array(self._ranked(ranked))
            case Shifted() as shifted:
                found = self._shifted(shifted)
            case Nth() as nth:
                found = self._nth(nth)
            case AggregateCall() as call:
                found = self._aggregate(call, store)
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        return found.take(pa.array(back))

    @property
    def _places(self) -> Int64s:
        return np.arange(len(self.order))

    @property
    def _peers(self) -> tuple[Int64s, Int64s]:
        """The first and the last place of those that stand together with each."""
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
        least, more = size // ranked.parts, size % ranked.parts
        large = more * (least + 1)
        return np.where(
            before < large,
            before // (least + 1) + 1,
            more + (before - large) // np.maximum(least, 1) + 1,
        )

    def _column(self, place: int) -> pa.Array:
        return self.columns[place].take(pa.array(self.order))

    def _shifted(self, function: Shifted) -> pa.Array:
        wanted = self._places - function.steps
        there = (wanted >= self.starts) & (wanted <= self.ends)
        column = self._column(function.column)
        if function.default is None:
            return column.take(pa.array(wanted, mask=~there))
        default = self._column(function.default)
        kind = common_type(column.type, default.type)
        both = pa.concat_arrays([cast_values(column, kind), cast_values(default, kind)])
        return both.take(pa.array(np.where(there, wanted, len(column) + self._places)))

    def _nth(self, function: Nth) -> pa.Array:
        firsts, lasts = self._frames()
        column = self._column(function.column)
        if function.ignores_nulls:
            valid = np.asarray(column.is_valid())
            kept = np.flatnonzero(valid)
            counts = np.concatenate([[0], np.cumsum(valid)])
            firsts, lasts = counts[firsts], counts[np.maximum(lasts + 1, firsts)] - 1
            column = column.take(pa.array(kept))
        chosen = lasts if function.number < 0 else firsts + function.number - 1
        missing = (lasts < firsts) | (chosen > lasts)
        return column.take(pa.array(np.where(missing, 0, chosen), mask=missing))

    def _aggregate(self, call: AggregateCall, store: ChunkStore) -> pa.Array:
        firsts, lasts = self._frames()
        frames, mine = np.unique(
            np.stack([firsts, np.maximum(lasts + 1, firsts)]), axis=1, return_inverse=True
        )
        column = None if call.column is None else self._column(call.column)
        found = aggregate_frames(call, column, frames[0], frames[1], store)
        return found.take(pa.array(mine.ravel()))

    def _frames(self) -> tuple[Int64s, Int64s]:
        """The first and the last place of the frame of each."""
        frame, (first, last) = self.window.frame, self._peers
        if frame.by_rows:
            first = last = self._places
        firsts = self.starts if frame.first is None else first + frame.first
        lasts = self.ends if frame.last is None else last + frame.last
        return np.maximum(firsts, self.starts), np.minimum(lasts, self.ends)


def _codes(column: pa.Array, term: OrderTerm) -> Int64s:
    """Numbers that compare as a term of ORDER BY says."""
    codes = order_codes(column)
    most = int(codes.max(initial=0)) + 1
    ordered = most - codes if term.descending else codes
    nulls = most + 1 if term.nulls_last else 0
    found: Int64s = np.where(codes == NULL_CODE, nulls, ordered)
    return found
