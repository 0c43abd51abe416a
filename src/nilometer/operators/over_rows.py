"""OVER: something of every row and of those before it in its partition, in the order of time.

Rows only come. What is kept are the rows that later ones look back at, and those that wait for
the ones which they look forward to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.expression_types import common_type
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import (
    SpeaksLater,
    Stored,
    make_changes,
    no_changes,
)
from nilometer.operators.change_specs import AggregateCall
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.framed_aggregates import aggregate_frames
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.ordered_rows import OrderedRows, in_order, keep_in_order
from nilometer.operators.stream_buffer import StreamBuffer

_ROWS: Final = "rows"
_TIMES: Final = "times"


@dataclass(frozen=True, slots=True)
class Offset:
    """LAG, or LEAD if steps are negative: a column so many rows before."""

    column: int
    steps: int
    default: int | None = None
    """The column that stands where there is no such row."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """ROW_NUMBER, RANK, DENSE_RANK, or the COUNT of all rows until now."""

    kind: str


@dataclass(frozen=True, slots=True)
class Frame:
    """So many rows before each, or all that are at most so much older; and the row itself.

    By time, rows of its own instant are in it, too.
    """

    rows: int | None
    length: int | None


@dataclass(frozen=True, slots=True)
class Picked:
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE of a frame."""

    column: int
    last: bool
    frame: Frame
    ignores_nulls: bool = False
    number: int = 1
    """The how-many-th from the start of the frame."""


@dataclass(frozen=True, slots=True)
class Framed:
    """An aggregate of a frame."""

    call: AggregateCall
    frame: Frame


OverFunction: TypeAlias = Offset | Numbering | Picked | Framed


@dataclass(frozen=True)
class OverSpec(SpeaksLater):
    """Of rows whose first columns pass, then keys and arguments, and the time at last."""

    functions: tuple[OverFunction, ...]
    keys: tuple[int, ...]
    passed: int
    input_types: tuple[pa.DataType, ...]
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> OverRows:
        return OverRows(self, store)

    @property
    def back(self) -> int:
        """How many rows are looked back at."""
        steps = [one.steps for one in self.functions if isinstance(one, Offset)]
        return max([0, *steps, *(frame.rows or 0 for frame in self._frames)])

    @property
    def length(self) -> int:
        """How much older rows may be that are looked back at."""
        return max([-1, *(frame.length or 0 for frame in self._frames)])

    @property
    def ahead(self) -> int:
        """How many rows are looked forward to."""
        return max([0, *(-one.steps for one in self.functions if isinstance(one, Offset))])

    @property
    def counts(self) -> bool:
        return any(isinstance(one, Numbering) for one in self.functions)

    @property
    def _frames(self) -> list[Frame]:
        return [one.frame for one in self.functions if isinstance(one, Picked | Framed)]


class OverRows:
    """A running OVER."""

    def __init__(self, spec: OverSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._store = store
        self._held = StreamBuffer(RowLayout(len(spec.input_types), ()), Kernel.MERGE, store)
        self._gone = GroupTable((), store)
        """How many rows and instants of a partition are not held any more."""

    @property
    def stored(self) -> Sequence[Stored]:
        """Everything that it keeps in the store."""
        return (self._held, self._gone)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The results strictly before a frontier, given the rows that have come."""
        (new,) = inputs
        ended = frontier >= FOREVER
        if not len(new) and not (ended and self._held.refs):
            return no_changes(self._spec.types)
        held = [chunk.rows for chunk in self._held.chunks()]
        rows = in_order(
            pa.concat_batches([*held, new]) if held else new, self._spec.keys, self._spec.passed
        )
        gone = self._gone.lookup(rows.groups.ids) if self._spec.counts else {}
        known = rows.is_open & (ended | (rows.places + self._spec.ahead <= rows.lasts))
        shown = np.flatnonzero(known)
        results = [self._result(one, rows, gone, shown) for one in self._spec.functions]
        told = rows.times[np.minimum(shown + self._spec.ahead, rows.lasts[shown])]
        passed = [column.take(pa.array(shown)) for column in rows.columns[: self._spec.passed]]
        kinds = self._spec.types[self._spec.passed :]
        own = [one.cast(kind) for one, kind in zip(results, kinds, strict=False)]
        self._keep(rows, rows.is_open & ~known, gone, frontier)
        columns = [*passed, *own, pa.array(told).cast(self._spec.types[-1])]
        return make_changes(columns, told, np.ones(len(told), np.int64))

    def _result(
        self, function: OverFunction, rows: OrderedRows, gone: dict[str, Int64s], shown: Int64s
    ) -> pa.Array:
        match function:
            case Offset():
                return _offset(function, rows, shown)
            case Numbering(kind):
                return pa.array(_numbers(kind, rows, gone)[shown].astype(np.int64))
            case Picked():
                return _picked(function, rows, shown)
            case Framed():
                return self._aggregate(function, rows, shown)

    def _aggregate(self, function: Framed, rows: OrderedRows, shown: Int64s) -> pa.Array:
        """An aggregate of the frame of every row."""
        firsts, lasts = _bounds(function.frame, rows, shown)
        place = function.call.column
        column = None if place is None else rows.columns[place]
        return aggregate_frames(function.call, column, firsts, lasts + 1, self._store)

    def _keep(
        self, rows: OrderedRows, waiting: Bools, gone: dict[str, Int64s], frontier: int
    ) -> None:
        """Keep what later rows look back at, and what waits; whole instants of it."""
        spec, places = self._spec, rows.places
        first_waiting = np.full(len(rows.groups), len(rows))
        np.minimum.at(first_waiting, rows.numbers[waiting], places[waiting])
        next_place = np.minimum(first_waiting[rows.numbers], rows.lasts + 1)
        kept = waiting | (places >= next_place - spec.back)
        if spec.length >= 0:
            safe = np.minimum(next_place, max(len(rows) - 1, 0))
            is_one = next_place <= rows.lasts
            oldest = np.where(is_one, rows.times[safe], frontier) if len(rows) else rows.times
            kept |= rows.times >= np.minimum(oldest, frontier) - spec.length
        since = np.full(len(rows.groups), FOREVER)
        np.minimum.at(since, rows.numbers[kept], rows.times[kept])
        kept = rows.times >= since[rows.numbers]
        self._count_gone(rows, kept, gone)
        keep_in_order(self._held, rows, (), np.flatnonzero(kept), waiting)

    def _count_gone(self, rows: OrderedRows, kept: Bools, gone: dict[str, Int64s]) -> None:
        if not self._spec.counts:
            return
        size, dropped = len(rows.groups), rows.numbers[~kept]
        instants = rows.numbers[~kept & rows.begins_instant]
        nothing = np.zeros(size, np.int64)
        counts = {
            _ROWS: gone.get(_ROWS, nothing) + np.bincount(dropped, minlength=size),
            _TIMES: gone.get(_TIMES, nothing) + np.bincount(instants, minlength=size),
        }
        self._gone.update(Groups(rows.groups.ids, [], counts))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "held": [ref.to_json() for ref in self._held.refs],
            "gone": [ref.to_json() for ref in self._gone.refs],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._held.restore(ChunkRef(**ref) for ref in snapshot["held"])
        self._gone.restore(ChunkRef(**ref) for ref in snapshot["gone"])


def _picked(function: Picked, rows: OrderedRows, shown: Int64s) -> pa.Array:
    first, end = _bounds(function.frame, rows, shown)
    values = rows.columns[function.column]
    if not function.ignores_nulls or not values.null_count:
        chosen = end if function.last else first + function.number - 1
        return values.take(pa.array(chosen, mask=chosen > end))
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    known = np.flatnonzero(is_valid)
    until = np.concatenate([[0], np.cumsum(is_valid)])  # so many are known before each row
    which = until[end + 1] - 1 if function.last else until[first] + function.number - 1
    there = (which >= until[first]) & (which < until[end + 1])
    places = known[np.where(there, which, 0)] if len(known) else which
    return values.take(pa.array(places, mask=~there))


def _offset(function: Offset, rows: OrderedRows, shown: Int64s) -> pa.Array:
    wanted = shown - function.steps
    there = (wanted >= rows.starts[shown]) & (wanted <= rows.lasts[shown])
    column = rows.columns[function.column]
    if function.default is None:
        return column.take(pa.array(wanted, mask=~there))
    default = rows.columns[function.default]
    kind = common_type(column.type, default.type)
    both = pa.concat_arrays([cast_values(column, kind), cast_values(default, kind)])
    return both.take(pa.array(np.where(there, wanted, len(rows) + shown)))


def _numbers(kind: str, rows: OrderedRows, gone: dict[str, Int64s]) -> Int64s:
    """The numbers of rows in their partitions, those that are not held any more counted."""
    nothing = np.zeros(len(rows.groups), np.int64)
    before = gone.get(_ROWS, nothing)[rows.numbers] - rows.starts
    begins = rows.begins_instant
    if kind == "ROW_NUMBER":
        return before + rows.places + 1
    if kind == "DENSE_RANK":
        instants = np.cumsum(begins)
        first = instants[rows.starts] if len(rows) else instants
        return gone.get(_TIMES, nothing)[rows.numbers] + instants - first + 1
    starts = np.flatnonzero(begins)
    number = np.cumsum(begins) - 1
    if kind == "RANK":
        ranks: Int64s = before + starts[number] + 1
        return ranks
    ends = np.append(starts[1:], len(rows)) - 1
    counts: Int64s = before + ends[number] + 1
    return counts


def _bounds(frame: Frame, rows: OrderedRows, shown: Int64s) -> tuple[Int64s, Int64s]:
    """The first and the last row of the frames of some rows."""
    if frame.rows is not None:
        return np.maximum(rows.starts[shown], shown - frame.rows), shown
    assert frame.length is not None
    firsts, ends = np.empty_like(shown), np.empty_like(shown)
    numbers = rows.numbers[shown]
    edges = np.flatnonzero(np.diff(numbers)) + 1
    for mine in np.split(np.arange(len(shown)), edges):
        if not len(mine):
            continue
        start, last = rows.starts[shown[mine[0]]], rows.lasts[shown[mine[0]]]
        times, asked = rows.times[start : last + 1], rows.times[shown[mine]]
        firsts[mine] = start + np.searchsorted(times, asked - frame.length)
        ends[mine] = start + np.searchsorted(times, asked, "right") - 1
    return firsts, ends
