"""A table function in a windowed plan: its spec, and what all kinds have in common."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.chunk import Kernel, RowLayout, make_chunk
from nilometer.kernels.key_hashes import hash_rows
from nilometer.kernels.row_groups import RowGroups, row_groups
from nilometer.mining.table_function import CheckedCall, Columns, Tables
from nilometer.operators.change_operator import diffs_of, row_columns, times_of
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.stream_buffer import StreamBuffer


@dataclass(frozen=True)
class FunctionCall:
    """A function, and the positions of its arguments among the columns of its input."""

    name: str
    call: CheckedCall
    input_types: tuple[pa.DataType, ...]
    keys: tuple[int, ...]
    arguments: Mapping[str, int]
    tables: tuple[str, ...]
    """The static tables: its further inputs, in this order."""

    def columns(self, rows: Sequence[pa.Array]) -> dict[str, pa.Array]:
        """The column arguments by name, taken from these columns."""
        return {name: rows[place] for name, place in self.arguments.items()}


class LastUsed:
    """A cache of this process that keeps the most recently used objects."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[object, Any] = OrderedDict()

    def find(self, key: object) -> Any:
        """The object cached under a key, or None."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def keep(self, key: object, value: Any) -> None:
        """Cache an object under a key."""
        self._values[key] = value
        while len(self._values) > self._limit:
            self._values.popitem(last=False)


WORKERS: Final = LastUsed(64)
"""What was built from static tables, by their contents: models are slow to build, and buckets share
them."""
_CONTENTS: Final = LastUsed(1 << 12)
"""Digests of the contents of static tables, by the names of their chunks."""


class StaticTables:
    """The rows of static tables; they arrive with the first period, and are kept."""

    def __init__(self, call: FunctionCall, store: ChunkStore) -> None:
        layouts = [RowLayout(len(call.call.tables[name]), ()) for name in call.tables]
        self.buffers = [StreamBuffer(one, Kernel.MERGE, store) for one in layouts]
        self._layouts = layouts
        self._call = call

    def take(self, inputs: Sequence[pa.RecordBatch]) -> None:
        """Store the rows of the further inputs."""
        for buffer, layout, changes in zip(self.buffers, self._layouts, inputs, strict=True):
            if len(changes):
                buffer.add(make_chunk(changes, layout, Kernel.MERGE))

    @property
    def key(self) -> str:
        """A digest of the rows: the same in all buckets."""
        names = (
            repr(self._call.call.tables),
            *(ref.id for one in self.buffers for ref in one.refs),
        )
        digest: str | None = _CONTENTS.find(names)
        if digest is None:
            rows = self._all_rows()
            digest = _digest(names[0], rows)
            _CONTENTS.keep(names, digest)
            WORKERS.keep(digest, rows)
        return digest

    def read(self) -> Tables:
        """The rows by table name, in an order that does not depend on arrival."""
        tables: Tables | None = WORKERS.find(self.key)
        if tables is None:
            tables = self._all_rows()
            WORKERS.keep(self.key, tables)
        return tables

    def _all_rows(self) -> Tables:
        parts = map(_in_order, map(self._rows, range(len(self.buffers))))
        return dict(zip(self._call.tables, parts, strict=True))

    def _rows(self, number: int) -> pa.RecordBatch:
        kinds = self._call.call.tables[self._call.tables[number]]
        names = [f"c{i}" for i in range(len(kinds))]
        parts = [chunk.rows for chunk in self.buffers[number].chunks()]
        if not parts:
            arrays = [pa.array([], kind) for kind in kinds]
            return pa.RecordBatch.from_arrays(arrays, names)
        rows = pa.concat_batches(parts)
        copies = np.repeat(np.arange(len(rows)), np.maximum(diffs_of(rows), 0))
        return pa.RecordBatch.from_arrays(row_columns(rows), names).take(pa.array(copies))

    def snapshot(self) -> list[list[dict[str, Any]]]:
        """What `restore` needs, apart from the chunks in the store."""
        return [[ref.to_json() for ref in buffer.refs] for buffer in self.buffers]

    def restore(self, snapshot: list[list[dict[str, Any]]]) -> None:
        """Continue from a snapshot, with the same store."""
        for buffer, refs in zip(self.buffers, snapshot, strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)


def _digest(types: str, tables: Tables) -> str:
    digest = sha256(types.encode())
    for name, rows in tables.items():
        digest.update(name.encode())
        digest.update(rows.serialize())
    return digest.hexdigest()


def _in_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    if not rows.num_columns or not len(rows):
        return rows
    return rows.take(pa.array(np.argsort(hash_rows(rows.columns), kind="stable")))


@dataclass(frozen=True)
class KeyRows:
    """The rows of one key, in order of time."""

    number: int
    """The number of its group."""
    places: Int64s
    """The positions of the rows in the input."""
    times: Int64s


def rows_by_key(changes: pa.RecordBatch, keys: Sequence[int]) -> tuple[RowGroups, list[KeyRows]]:
    """The rows of each key in order of time; equal times in a deterministic order."""
    columns, times = row_columns(changes), times_of(changes)
    groups = row_groups([columns[place] for place in keys], len(changes))
    order = np.lexsort((times, groups.numbers))
    order = _break_ties(order, groups.numbers, times, columns)
    numbers = groups.numbers[order]
    edges = np.searchsorted(numbers, np.arange(len(groups) + 1))
    parts = [order[begin:end] for begin, end in pairwise(edges)]
    return groups, [KeyRows(n, places, times[places]) for n, places in enumerate(parts)]


def _break_ties(
    order: Int64s, numbers: Int64s, times: Int64s, columns: Sequence[pa.Array]
) -> Int64s:
    """Order rows of the same key and time by a hash of all their values."""
    same = (np.diff(numbers[order]) == 0) & (np.diff(times[order]) == 0)
    if not same.any():
        return order
    return np.lexsort((hash_rows(columns), times, numbers))


def only(columns: Columns, places: Int64s) -> dict[str, pa.Array]:
    """The columns with only these rows."""
    return {name: column.take(pa.array(places)) for name, column in columns.items()}
