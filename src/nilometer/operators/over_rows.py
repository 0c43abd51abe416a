"""OVER: a value for every row from it and those before it in its partition, in time order.

Rows are append-only. The state is the rows that later ones look back at, and those that wait for
rows that they look forward to. For an aggregate of all rows until now, totals are kept.
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
    EmitsWithoutInput,
    StoredChunks,
    make_changes,
    no_changes,
)
from nilometer.operators.change_specs import AggregateCall
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.framed_aggregates import aggregate_frames
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.ordered_rows import OrderedRows, in_order, keep_in_order
from nilometer.operators.running_aggregates import RunningAggregates
from nilometer.operators.stream_buffer import StreamBuffer

_ROWS: Final = "rows"
_TIMES: Final = "times"


@dataclass(frozen=True, slots=True)
class Offset:
    """LAG, or LEAD if steps are negative: a column some rows before."""

    column: int
    steps: int
    default: int | None = None
    """The column whose value is used where there is no such row."""
    ignores_nulls: bool = False
    """Whether only rows with a non-NULL value count; then it only looks back."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """ROW_NUMBER, RANK or DENSE_RANK."""

    kind: str


@dataclass(frozen=True, slots=True)
class OverFrame:
    """A number of rows before each, those up to some age, or all; and the row itself.

    By time, it includes rows of the same instant.
    """

    rows: int | None = None
    length: int | None = None
    by_rows: bool = False
    """Whether a frame of all rows ends with the row itself, not with its instant."""

    @property
    def has_all(self) -> bool:
        return self.rows is None and self.length is None


@dataclass(frozen=True, slots=True)
class Picked:
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE of a frame."""

    column: int
    last: bool
    frame: OverFrame
    ignores_nulls: bool = False
    number: int = 1
    """The position from the start of the frame."""


@dataclass(frozen=True, slots=True)
class Framed:
    """An aggregate of a frame."""

    call: AggregateCall
    frame: OverFrame


@dataclass(frozen=True, slots=True)
class Running:
    """An aggregate of all rows until the instant of each; or, by rows, until the row itself."""

    call: AggregateCall
    by_rows: bool


OverFunction: TypeAlias = Offset | Numbering | Picked | Framed | Running


@dataclass(frozen=True)
class OverSpec(EmitsWithoutInput):
    """OVER of rows: columns that pass first, then keys and arguments, then the time."""

    functions: tuple[OverFunction, ...]
    keys: tuple[int, ...]
    passed: int
    input_types: tuple[pa.DataType, ...]
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> OverRows:
        return OverRows(self, store)

    @property
    def back(self) -> int:
        """How many rows it looks back."""
        offsets = [one for one in self.functions if isinstance(one, Offset)]
        steps = [one.steps for one in offsets if not one.ignores_nulls]
        return max([0, *steps, *(frame.rows or 0 for frame in self._frames)])

    @property
    def length(self) -> int:
        """How much older the rows may be that it looks back at."""
        return max([-1, *(frame.length or 0 for frame in self._frames)])

    @property
    def ahead(self) -> int:
        """How many rows it looks forward."""
        return max([0, *(-one.steps for one in self.functions if isinstance(one, Offset))])

    @property
    def counts(self) -> bool:
        """Whether rows that are no longer held are counted."""
        return any(
            isinstance(one, Numbering) or (isinstance(one, Running) and one.by_rows)
            for one in self.functions
        )

    def running(self, *, by_rows: bool) -> tuple[AggregateCall, ...]:
        """The aggregates of all rows until now; see `Running`."""
        aggregates = (one for one in self.functions if isinstance(one, Running))
        return tuple(one.call for one in aggregates if one.by_rows is by_rows)

    @property
    def _frames(self) -> list[OverFrame]:
        return [one.frame for one in self.functions if isinstance(one, Picked | Framed)]


class OverRows:
    """A running OVER."""

    def __init__(self, spec: OverSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._store = store
        self._held = StreamBuffer(RowLayout(len(spec.input_types), ()), Kernel.MERGE, store)
        self._gone = GroupTable((), store)
        """How many rows and instants of a partition are no longer held."""
        self._totals = {
            by_rows: RunningAggregates(calls, spec.keys, spec.input_types, store)
            for by_rows in (False, True)
            if (calls := spec.running(by_rows=by_rows))
        }
        assert not self._totals or not spec.ahead, "rows are added up when they come"

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        totals = (table for one in self._totals.values() for table in one.stored)
        return (self._held, self._gone, *totals)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The results strictly before a frontier, given the rows that have arrived."""
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
        totals = {
            by_rows: one.take(
                [column.take(pa.array(shown)) for column in rows.columns],
                (_numbers("ROW_NUMBER", rows, gone) if by_rows else rows.times)[shown],
            )
            for by_rows, one in self._totals.items()
        }
        results = [
            totals[one.by_rows][one.call]
            if isinstance(one, Running)
            else self._result(one, rows, gone, shown)
            for one in self._spec.functions
        ]
        known_at = rows.times[np.minimum(shown + self._spec.ahead, rows.lasts[shown])]
        passed = [column.take(pa.array(shown)) for column in rows.columns[: self._spec.passed]]
        kinds = self._spec.types[self._spec.passed :]
        own = [one.cast(kind) for one, kind in zip(results, kinds, strict=False)]
        self._keep(rows, rows.is_open & ~known, gone, frontier)
        columns = [*passed, *own, pa.array(known_at).cast(self._spec.types[-1])]
        return make_changes(columns, known_at, np.ones(len(known_at), np.int64))

    def _result(
        self,
        function: Offset | Numbering | Picked | Framed,
        rows: OrderedRows,
        gone: dict[str, Int64s],
        shown: Int64s,
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
        """Keep rows that later rows look back at and rows that wait, in whole instants."""
        spec, places = self._spec, rows.places
        first_waiting = np.full(len(rows.groups), len(rows))
        np.minimum.at(first_waiting, rows.numbers[waiting], places[waiting])
        next_place = np.minimum(first_waiting[rows.numbers], rows.lasts + 1)
        keep = waiting | (places >= next_place - spec.back)
        if spec.length >= 0:
            safe = np.minimum(next_place, max(len(rows) - 1, 0))
            is_one = next_place <= rows.lasts
            oldest = np.where(is_one, rows.times[safe], frontier) if len(rows) else rows.times
            keep |= rows.times >= np.minimum(oldest, frontier) - spec.length
        since = np.full(len(rows.groups), FOREVER)
        np.minimum.at(since, rows.numbers[keep], rows.times[keep])
        keep = rows.times >= since[rows.numbers]
        instants = np.cumsum(rows.begins_instant) - 1
        for function in spec.functions:
            keep |= np.isin(instants, instants[_kept_for_ever(function, rows)])
        self._count_gone(rows, keep, gone)
        keep_in_order(self._held, rows, (), np.flatnonzero(keep), waiting)

    def _count_gone(self, rows: OrderedRows, keep: Bools, gone: dict[str, Int64s]) -> None:
        if not self._spec.counts:
            return
        size, dropped = len(rows.groups), rows.numbers[~keep]
        instants = rows.numbers[~keep & rows.begins_instant]
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
            "totals": {str(by_rows): one.snapshot() for by_rows, one in self._totals.items()},
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._held.restore(ChunkRef(**ref) for ref in snapshot["held"])
        self._gone.restore(ChunkRef(**ref) for ref in snapshot["gone"])
        for by_rows, one in self._totals.items():
            one.restore(snapshot["totals"][str(by_rows)])


def _picked(function: Picked, rows: OrderedRows, shown: Int64s) -> pa.Array:
    first, end = _bounds(function.frame, rows, shown)
    values = rows.columns[function.column]
    if not function.ignores_nulls or not values.null_count:
        chosen = end if function.last else first + function.number - 1
        return values.take(pa.array(chosen, mask=chosen > end))
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    known = np.flatnonzero(is_valid)
    until = np.concatenate([[0], np.cumsum(is_valid)])  # the number of valid values before each row
    which = until[end + 1] - 1 if function.last else until[first] + function.number - 1
    there = (which >= until[first]) & (which < until[end + 1])
    places = known[np.where(there, which, 0)] if len(known) else which
    return values.take(pa.array(places, mask=~there))


def _kept_for_ever(function: OverFunction, rows: OrderedRows) -> Int64s:
    """The rows that future rows may need, however long that takes."""
    match function:
        case Offset(column, steps, _, True):
            return _of_each_partition(rows, column, True, last=steps)
        case Picked(column, last, frame, ignores_nulls, number) if frame.has_all:
            if not last:
                return _of_each_partition(rows, column, ignores_nulls, first=number)
            if ignores_nulls:
                return _of_each_partition(rows, column, True, last=1)
    return np.zeros(0, np.int64)


def _of_each_partition(
    rows: OrderedRows, column: int, is_known: bool, *, first: int = 0, last: int = 0
) -> Int64s:
    """The first or last n rows of each partition, optionally only where a column is not NULL."""
    places = rows.places
    if is_known:
        places = np.flatnonzero(rows.columns[column].is_valid().to_numpy(zero_copy_only=False))
    numbers = rows.numbers[places]
    begins, ends = np.searchsorted(numbers, numbers), np.searchsorted(numbers, numbers, "right")
    own = np.arange(len(places))
    return places[(own - begins < first) | (ends - own <= last)]


def _offset(function: Offset, rows: OrderedRows, shown: Int64s) -> pa.Array:
    column = rows.columns[function.column]
    if function.ignores_nulls:
        wanted, there = places_before(column, function.steps, shown, rows.starts[shown])
    else:
        wanted = shown - function.steps
        there = (wanted >= rows.starts[shown]) & (wanted <= rows.lasts[shown])
    if function.default is None:
        return column.take(pa.array(wanted, mask=~there))
    default = rows.columns[function.default]
    kind = common_type(column.type, default.type)
    both = pa.concat_arrays([cast_values(column, kind), cast_values(default, kind)])
    return both.take(pa.array(np.where(there, wanted, len(rows) + shown)))


def places_before(
    column: pa.Array, steps: int, places: Int64s, starts: Int64s
) -> tuple[Int64s, Bools]:
    """The position n non-NULL values before each of some rows, and whether there is one."""
    is_valid = column.is_valid().to_numpy(zero_copy_only=False)
    known = np.flatnonzero(is_valid)
    until = np.concatenate([[0], np.cumsum(is_valid)])  # the number of valid values before each row
    which = until[places] - steps
    there = which >= until[starts]
    return known[np.where(there, which, 0)] if len(known) else which, there


def _numbers(kind: str, rows: OrderedRows, gone: dict[str, Int64s]) -> Int64s:
    """The numbers of rows in their partitions, including rows no longer held."""
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
    ranks: Int64s = before + starts[number] + 1
    return ranks


def _bounds(frame: OverFrame, rows: OrderedRows, shown: Int64s) -> tuple[Int64s, Int64s]:
    """The first and the last row of the frames of some rows."""
    if frame.has_all:
        starts = np.flatnonzero(rows.begins_instant)
        lasts = np.append(starts[1:], len(rows)) - 1
        instants = np.searchsorted(starts, shown, "right") - 1
        return rows.starts[shown], shown if frame.by_rows else lasts[instants]
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
        times, shown_times = rows.times[start : last + 1], rows.times[shown[mine]]
        firsts[mine] = start + np.searchsorted(times, shown_times - frame.length)
        ends[mine] = start + np.searchsorted(times, shown_times, "right") - 1
    return firsts, ends
