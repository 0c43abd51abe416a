"""The values that conditions and measures see of matches, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.match_search import AskedRow, Tracked
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.framed_aggregates import aggregate_frames
from nilometer.operators.match_spec import Aggregated, Navigation, Numbered, Slot, VariableName
from nilometer.operators.ordered_rows import OrderedRows


def near(one: Navigation, rows: OrderedRows, places: Int64s) -> pa.Array:
    """A column some steps away from some rows; NULL outside their partitions."""
    return _stepped(one, rows, places, np.ones(len(places), np.bool_))


def _stepped(one: Navigation, rows: OrderedRows, places: Int64s, there: Bools) -> pa.Array:
    column = rows.columns[one.column]
    if not len(rows):
        return column
    safe = np.where(there, places, 0)
    wanted = safe + one.steps
    there = there & (wanted >= rows.starts[safe]) & (wanted <= rows.lasts[safe])
    return column.take(pa.array(wanted, mask=~there))


@dataclass(frozen=True)
class AskedRows:
    """What a variable's condition is evaluated for: rows, after matches so far."""

    starts: Sequence[int]
    """The rows at which the matches began."""
    asked: Sequence[AskedRow]
    blocks: Sequence[Int64s]
    """The rows for each match; if several, all see the same match so far."""
    variable: int

    @cached_property
    def lengths(self) -> Int64s:
        return np.asarray([len(block) for block in self.blocks], np.int64)


def asked_column(
    slot: Slot, look: AskedRows, tracked: tuple[Tracked, ...], rows: OrderedRows, store: ChunkStore
) -> pa.Array:
    """The values that a condition sees of matches so far."""
    if isinstance(slot, Aggregated):
        return _asked_aggregate(slot, look, rows, store)
    assert isinstance(slot, Navigation)
    if slot.is_near(look.variable):
        places = np.concatenate(look.blocks)
    else:
        wanted = (slot.variables, slot.last)
        number = [(one.variables, one.last) for one in tracked].index(wanted)
        marked = [_marked(slot, one.marks[number]) for one in look.asked]
        places = np.repeat(np.asarray(marked, np.int64), look.lengths)
    return _stepped(slot, rows, places, places >= 0)


def _asked_aggregate(
    slot: Aggregated, look: AskedRows, rows: OrderedRows, store: ChunkStore
) -> pa.Array:
    taken: list[int] = []
    bounds = [0]
    for one, start in zip(look.asked, look.starts, strict=True):
        taken += [start + n for n, variable in enumerate(one.path) if variable in slot.variables]
        taken += [one.place] if one.variable in slot.variables else []
        bounds.append(len(taken))
    place = slot.call.column
    column = None if place is None else rows.columns[place].take(pa.array(taken, pa.int64()))
    return aggregate_frames(
        slot.call, column, np.asarray(bounds[:-1]), np.asarray(bounds[1:]), store
    )


def _marked(slot: Navigation, places: tuple[int, ...]) -> int:
    """The remembered row that is referred to; -1 if there is none."""
    if slot.offset >= len(places):
        return -1
    return places[-1 - slot.offset] if slot.last else places[slot.offset]


@dataclass(frozen=True)
class MatchedRows:
    """Consecutive matches: their rows, and the variable of each row."""

    rows: OrderedRows
    starts: Int64s
    """The first row of each match."""
    lengths: Int64s
    path: Int64s
    """The variables of all rows of all matches."""
    numbers: Int64s
    known_at: Int64s
    """The instant at which each match is known."""

    @cached_property
    def ends(self) -> Int64s:
        """The position in the path after which each match ends."""
        return np.cumsum(self.lengths)

    @cached_property
    def owners(self) -> Int64s:
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    @cached_property
    def places(self) -> Int64s:
        """The row at each position in the path."""
        first = self.starts - (self.ends - self.lengths)
        return first[self.owners] + np.arange(len(self.path))

    def looks(self, all_rows: bool) -> Int64s:
        """The positions in the path that make output: all, or the last of each match."""
        return np.arange(len(self.path)) if all_rows else self.ends - 1


def column_of(
    slot: Slot, matches: MatchedRows, looks: Int64s, variables: Sequence[str], store: ChunkStore
) -> pa.Array:
    """The values that a measure sees from some positions in the paths of matches."""
    owners = matches.owners[looks]
    if isinstance(slot, Numbered):
        return pa.array(matches.numbers[owners])
    last = matches.ends[owners] - 1 if slot.final else looks
    if isinstance(slot, VariableName):
        return pa.array(variables).take(pa.array(matches.path[last]))
    first = matches.ends[owners] - matches.lengths[owners]
    mine = np.isin(matches.path, list(slot.variables))
    chosen = np.flatnonzero(mine)
    until = np.concatenate([[0], np.cumsum(mine)])
    begins, ends = until[first], until[last + 1]
    if isinstance(slot, Navigation):
        wanted = ends - 1 - slot.offset if slot.last else begins + slot.offset
        there = (wanted >= begins) & (wanted < ends)
        places = np.full(len(looks), 0, np.int64)
        places[there] = matches.places[chosen[wanted[there]]]
        return _stepped(slot, matches.rows, places, there)
    place = slot.call.column
    rows = pa.array(matches.places[chosen])
    column = None if place is None else matches.rows.columns[place].take(rows)
    return aggregate_frames(slot.call, column, begins, ends, store)
