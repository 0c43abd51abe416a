"""The state of an operator per group: a few integers, kept in chunks sorted by hash.

Every update becomes a run of rows. A newer run's row of a group overrides those of all older
ones; a group whose integers are all zero is dead, and its row vanishes when it reaches the oldest
run. A run is merged into the one before it unless that has _RATIO times its rows. So there are
few runs, an update costs the groups it touches and a logarithmic number of rewrites, and the
rows held are at most about twice the groups alive. A run is one chunk, or several that share the
hashes among them where it is too large for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s, as_int64
from nilometer.kernels.chunk import SORTED_LAYOUT, Chunk, Kernel, sorted_chunk
from nilometer.kernels.gather import join_batches, take
from nilometer.kernels.row_ids import RowIds
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content, batch_content
from nilometer.operators.share import ROUTE, Share

_RATIO: Final = 4
_MOST_BYTES: Final = 128 << 20
"""A larger run is cut: Arrow and Spark's state have limits of 2 GiB."""
_IDS: Final = 2
"""The hashes come first; chunks are sorted by the first one."""


@dataclass(frozen=True)
class Groups:
    """Groups with their keys and values, in order of their ids where they come from a table."""

    ids: RowIds
    keys: Sequence[pa.Array]
    values: Mapping[str, Int64s]
    """The values by name; a missing name is zero for all groups."""

    def __len__(self) -> int:
        return len(self.ids)

    def value(self, name: str) -> Int64s:
        """One of the values of every group."""
        column = self.values.get(name)
        return np.zeros(len(self), np.int64) if column is None else column

    def only(self, places: Int64s) -> Groups:
        """Some of the groups."""
        return Groups(
            self.ids.only(places),
            [take(column, places) for column in self.keys],
            {name: values[places] for name, values in self.values.items()},
        )


class GroupTable:
    """Values of groups, oldest run first."""

    def __init__(self, key_types: Sequence[pa.DataType], store: ChunkStore) -> None:
        """An empty table; it need not keep the keys of groups if they are never read."""
        self.refs: list[ChunkRef] = []
        self._key_types = tuple(key_types)
        self._store = store
        self._loaded: dict[str, Chunk] = {}

    def restore(self, refs: Iterable[ChunkRef]) -> None:
        """Continue with the chunks of a snapshot."""
        self.refs = list(refs)

    def take_over(self, old: Sequence[GroupTable], share: Share, number: str | None = None) -> None:
        """Take over the groups of other tables, which have none in common, that belong here.

        `number`: a value that is unique in each of them, and shall be here.
        """
        parts = []
        for place, table in enumerate(old):
            groups = table.contents()
            if self._key_types:
                keys = [f"k{i}" for i in range(len(self._key_types))]
                here = share.of(place, pa.RecordBatch.from_arrays(list(groups.keys), keys))
            else:
                here = share.of_routes(place, groups.value(ROUTE))
            own = groups.only(np.flatnonzero(here))
            if number is not None:
                numbered = own.value(number)
                numbers = np.where(numbered != 0, joint_numbers(numbered, place, len(old)), 0)
                own = replace(own, values={**own.values, number: numbers})
            parts.append(own)
        self._write(self._overlay(parts), 0)

    def lookup(self, ids: RowIds) -> dict[str, Int64s]:
        """The values of some groups by name, zero for missing groups.

        It is faster if the ids are in order, as those of `row_groups` are.
        """
        values: dict[str, Int64s] = {}
        wanted = np.arange(len(ids))
        for ref in reversed(self.refs):
            rows = self._load(ref).rows
            places, occurs = _find(rows, ids.only(wanted))
            for name, column in _value_columns(rows, self._first_value):
                target = values.setdefault(name, np.zeros(len(ids), np.int64))
                target[wanted[occurs]] = column[places[occurs]]
            wanted = wanted[~occurs]
            if not len(wanted):
                break
        return values

    def find(self, ids: RowIds) -> Groups:
        """The groups among these that are alive, with their keys."""
        parts: list[Groups] = []
        wanted = np.arange(len(ids))
        for ref in reversed(self.refs):
            rows, occurs = _find(self._load(ref).rows, ids.only(wanted))
            parts.append(self._read([ref]).only(rows[occurs]))
            wanted = wanted[~occurs]
        return _only_alive(self._overlay(parts))

    def contents(self) -> Groups:
        """All groups that are alive."""
        return self._merge([self._read(refs) for refs in reversed(self._runs())], oldest=True)

    def content(self) -> Content:
        """All groups that are alive, however they are cut into runs."""
        groups = self.contents()
        names = sorted(name for name, values in groups.values.items() if values.any())
        columns = [pa.array(groups.ids.h1), pa.array(groups.ids.h2), *groups.keys]
        columns += [pa.array(groups.values[name]) for name in names]
        titles = [str(number) for number in range(len(columns))]
        return tuple(names), batch_content(pa.RecordBatch.from_arrays(columns, titles))

    def update(self, groups: Groups) -> None:
        """Replace the values of some groups, each named once."""
        if not len(groups):
            return
        runs = self._runs()
        merged, rows = [_sorted(groups)], len(groups)
        while runs and sum(ref.rows for ref in runs[-1]) < _RATIO * rows:
            refs = runs.pop()
            merged.append(self._read(refs))
            rows += len(merged[-1])
            for ref in refs:
                self._drop(ref)
        self._write(self._merge(merged, oldest=not runs), len(runs))

    def clear(self) -> None:
        """Delete all groups."""
        for ref in tuple(self.refs):
            self._drop(ref)

    @property
    def _first_value(self) -> int:
        return _IDS + len(self._key_types)

    def _runs(self) -> list[list[ChunkRef]]:
        """The chunks of every run, oldest first. The level of a chunk is the number of its run."""
        runs: dict[int, list[ChunkRef]] = {}
        for ref in self.refs:
            runs.setdefault(ref.level, []).append(ref)
        return list(runs.values())

    def _read(self, refs: Sequence[ChunkRef]) -> Groups:
        """All rows of a run."""
        parts = [self._load(ref).rows for ref in refs]
        rows = join_batches(parts)
        ids = RowIds(as_int64(rows.column(0)), as_int64(rows.column(1)))
        keys = rows.columns[_IDS : self._first_value]
        return Groups(ids, keys, dict(_value_columns(rows, self._first_value)))

    def _merge(self, newest_first: Sequence[Groups], *, oldest: bool) -> Groups:
        """Several runs merged; without dead groups if the oldest run is among them."""
        groups = newest_first[0] if len(newest_first) == 1 else self._overlay(newest_first)
        return _only_alive(groups) if oldest else groups

    def _overlay(self, newest_first: Sequence[Groups]) -> Groups:
        if not newest_first:
            nothing = np.zeros(0, np.int64)
            return Groups(RowIds(nothing, nothing), [pa.array([], k) for k in self._key_types], {})
        names = {name: None for groups in newest_first for name in groups.values}
        together = Groups(
            RowIds(
                np.concatenate([groups.ids.h1 for groups in newest_first]),
                np.concatenate([groups.ids.h2 for groups in newest_first]),
            ),
            [
                pa.concat_arrays(parts)
                for parts in zip(*(g.keys for g in newest_first), strict=True)
            ],
            {
                name: np.concatenate([groups.value(name) for groups in newest_first])
                for name in names
            },
        )
        order = _order(together.ids)
        ids = together.ids.only(order)
        newest = np.ones(len(order), np.bool_)
        newest[1:] = (ids.h1[1:] != ids.h1[:-1]) | (ids.h2[1:] != ids.h2[:-1])
        return together.only(order[newest])

    def _write(self, groups: Groups, run: int) -> None:
        """Store a run. Values that are zero in all its rows are left out."""
        if not len(groups):
            return
        values = {name: column for name, column in groups.values.items() if column.any()}
        keys = {f"k{i}": column for i, column in enumerate(groups.keys)}
        arrays = [pa.array(groups.ids.h1), pa.array(groups.ids.h2), *keys.values()]
        arrays += [pa.array(column) for column in values.values()]
        rows = pa.RecordBatch.from_arrays(arrays, ["h1", "h2", *keys, *values])
        for part in _cut(rows, groups.ids.h1):
            chunk = sorted_chunk(part)
            ref = self._store.add(chunk, run)
            self._loaded[ref.id] = chunk
            self.refs.append(ref)

    def _load(self, ref: ChunkRef) -> Chunk:
        if ref.id not in self._loaded:
            self._loaded[ref.id] = self._store.load(ref, SORTED_LAYOUT, Kernel.MERGE)
        return self._loaded[ref.id]

    def _drop(self, ref: ChunkRef) -> None:
        self.refs.remove(ref)
        self._loaded.pop(ref.id, None)
        self._store.remove(ref)


def joint_numbers(numbers: Int64s, place: int, tables: int) -> Int64s:
    """Numbers of one of several tables, in their order, that no two of the tables share."""
    return numbers * tables + place


def _value_columns(rows: pa.RecordBatch, first: int) -> list[tuple[str, Int64s]]:
    return [
        (rows.schema.names[i], as_int64(rows.column(i))) for i in range(first, rows.num_columns)
    ]


def _find(rows: pa.RecordBatch, ids: RowIds) -> tuple[Int64s, Bools]:
    """The positions of groups in the rows of a chunk, and whether they occur."""
    h1, h2 = as_int64(rows.column(0)), as_int64(rows.column(1))
    places = np.searchsorted(h1, ids.h1)
    places[places == len(h1)] = 0
    occurs: Bools = (h1[places] == ids.h1) & (h2[places] == ids.h2)
    unsure = np.flatnonzero((h1[places] == ids.h1) & ~occurs)
    while len(unsure):  # other groups have the same first hash
        places[unsure] += 1
        unsure = unsure[places[unsure] < len(h1)]
        unsure = unsure[h1[places[unsure]] == ids.h1[unsure]]
        hit = h2[places[unsure]] == ids.h2[unsure]
        occurs[unsure[hit]] = True
        unsure = unsure[~hit]
    return places, occurs


def _sorted(groups: Groups) -> Groups:
    h1 = groups.ids.h1
    return groups if (h1[1:] > h1[:-1]).all() else groups.only(_order(groups.ids))


def _order(ids: RowIds) -> Int64s:
    """The order by both hashes, stable. Rows in few sorted runs are merged, not sorted."""
    order = np.argsort(ids.h1, kind="stable")
    h1, h2 = ids.h1[order], ids.h2[order]
    if ((h1[1:] == h1[:-1]) & (h2[1:] != h2[:-1])).any():
        return np.lexsort((ids.h2, ids.h1))
    return order


def _only_alive(groups: Groups) -> Groups:
    alive = np.zeros(len(groups), np.bool_)
    for values in groups.values.values():
        alive |= values != 0
    return groups if alive.all() else groups.only(np.flatnonzero(alive))


def _cut(rows: pa.RecordBatch, hashes: Int64s) -> list[pa.RecordBatch]:
    """Parts of a limited size; equal hashes stay in one part."""
    parts = 1 + rows.nbytes // _MOST_BYTES
    wanted = hashes[np.arange(1, parts) * len(rows) // parts]
    edges = [0, *np.unique(np.searchsorted(hashes, wanted)).tolist(), len(rows)]
    return [rows.slice(a, b - a) for a, b in pairwise(edges) if b > a]
