"""Operators of windowed plans: changes in, changes out, one period of time after the other.

A change is a row with the instant from which it holds and how many copies are added (if negative,
retracted). Changes travel as a record batch: columns c0, c1, … and int64s `_time` and `_diff`.
An operator gets all changes of its inputs in a period [last frontier, frontier), each input's
in any order, and returns all its own changes of that period. So its output over the whole
run does not depend on how time is cut into periods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s, as_int64
from nilometer.kernels.row_errors import Rows
from nilometer.operators.chunk_store import ChunkRef, ChunkStore

TIME: Final = "_time"
DIFF: Final = "_diff"


class StoredChunks(Protocol):
    """Some chunks that an operator keeps."""

    refs: list[ChunkRef]


class ChangeOperator(Protocol):
    """A running operator. It never reads a clock."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of all inputs."""

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store; fit for JSON."""

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""


class EmitsWithoutInput:
    """Marks the spec of an operator that may emit in a period without input."""


class ChangeSpec(Protocol):
    """An operator before it runs: plain data that can be pickled."""

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns that leave, without time and count."""

    def start(self, store: ChunkStore) -> ChangeOperator:
        """The running operator, without any state yet."""


def make_changes(columns: Sequence[pa.Array], times: Int64s, diffs: Int64s) -> pa.RecordBatch:
    """Changes of rows of these columns."""
    names = [f"c{i}" for i in range(len(columns))]
    arrays = [*columns, pa.array(times, pa.int64()), pa.array(diffs, pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, [*names, TIME, DIFF])


def no_changes(types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """An empty batch of changes, for rows of these types."""
    nothing = np.zeros(0, np.int64)
    return make_changes([pa.array([], kind) for kind in types], nothing, nothing)


def row_columns(changes: pa.RecordBatch) -> list[pa.Array]:
    """The columns of the rows."""
    columns: list[pa.Array] = changes.columns[:-2]
    return columns


def changed_rows(changes: pa.RecordBatch, names: Sequence[str]) -> Rows:
    """The rows to compute with; a retracted row that is left out is not counted again."""
    return Rows(row_columns(changes), len(changes), names, counted=diffs_of(changes) > 0)


def times_of(changes: pa.RecordBatch) -> Int64s:
    """The instants at which the changes take effect."""
    return as_int64(changes.column(changes.num_columns - 2))


def diffs_of(changes: pa.RecordBatch) -> Int64s:
    """How many copies are added, or if negative, retracted."""
    return as_int64(changes.column(changes.num_columns - 1))
