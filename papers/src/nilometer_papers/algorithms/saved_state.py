"""What an algorithm remembers, as columns: tuples by stream and number, and plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s, as_int64
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, make_chunk
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer_papers.algorithms.join_algorithm import Saved
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

_LAYOUT = RowLayout(0, ())
"""Nothing here has a time; the first column stands in for it."""


@dataclass(frozen=True)
class Members:
    """The tuples in all buffers of an algorithm."""

    table: Int64s
    combination: Int64s
    """The combination of its table that a tuple belongs to."""
    stream: Int64s
    number: Int64s

    @classmethod
    def of(cls, tables: Iterable[Sequence[Result]]) -> Members:
        """The members of all combinations of some tables."""
        rows = [
            (table, place, one.stream, one.number)
            for table, combinations in enumerate(tables)
            for place, combination in enumerate(combinations)
            for one in combination
        ]
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)

    def numbers(self, stream: int) -> Int64s:
        """The numbers of the tuples of a stream."""
        numbers: Int64s = self.number[self.stream == stream]
        return numbers


class SavedState:
    """The last state that an algorithm saved, in a chunk store."""

    def __init__(self, store: ChunkStore) -> None:
        """A place for state that has not been saved yet."""
        self._members = StreamBuffer(_LAYOUT, Kernel.NESTED, store)
        self._numbers = StreamBuffer(_LAYOUT, Kernel.NESTED, store)
        self._table_names: list[str] = []
        self._number_names: list[str] = []

    @property
    def exists(self) -> bool:
        """Whether anything was ever saved."""
        return bool(self._table_names or self._number_names)

    @property
    def buffers(self) -> tuple[StreamBuffer, ...]:
        """The buffers that hold it."""
        return self._members, self._numbers

    def write(self, saved: Saved) -> Members:
        """Replace all that was saved before; returns the tuples it refers to."""
        members = Members.of(saved.tables.values())
        values = [
            (place, value) for place, own in enumerate(saved.numbers.values()) for value in own
        ]
        columns = [members.table, members.combination, members.stream, members.number]
        self._members.replace(_chunks(columns))
        self._numbers.replace(_chunks(np.array(values, dtype=np.int64).reshape(-1, 2).T))
        self._table_names, self._number_names = list(saved.tables), list(saved.numbers)
        return members

    def read(self, tuples: Sequence[Mapping[int, StreamTuple]]) -> Saved:
        """What was saved, given the tuples of each stream by number."""
        saved = Saved(
            {name: [] for name in self._table_names}, {name: [] for name in self._number_names}
        )
        members = zip(*_columns(self._members), strict=True)
        for (table, _), own in groupby(members, key=lambda member: member[:2]):
            combination = tuple(tuples[stream][number] for _, _, stream, number in own)
            saved.tables[self._table_names[table]].append(combination)
        for place, value in zip(*_columns(self._numbers), strict=True):
            saved.numbers[self._number_names[place]].append(value)
        return saved

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "tables": self._table_names,
            "numbers": self._number_names,
            "chunks": [[ref.to_json() for ref in buffer.refs] for buffer in self.buffers],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._table_names, self._number_names = snapshot["tables"], snapshot["numbers"]
        for buffer, refs in zip(self.buffers, snapshot["chunks"], strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)


def _chunks(columns: Iterable[Int64s]) -> list[Chunk]:
    """The columns as a chunk, if there are any rows."""
    arrays = [pa.array(column) for column in columns]
    rows = pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
    return [make_chunk(rows, _LAYOUT, Kernel.NESTED)] if len(rows) else []


def _columns(buffer: StreamBuffer) -> list[list[int]]:
    return [as_int64(c).tolist() for chunk in buffer.chunks() for c in chunk.rows.columns]
