"""A RANGE window over appended results: each is kept for that long after its own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nilometer.operators.change_operator import (
    EmitsWithoutInput,
    StoredChunks,
    diffs_of,
    make_changes,
    row_columns,
    times_of,
)
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.content import Content
from nilometer.operators.pending import Pending
from nilometer.operators.share import Share


@dataclass(frozen=True, slots=True)
class LastingSpec(EmitsWithoutInput):
    """Rows of these types are kept for this many microseconds."""

    length: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> Lasting:
        return Lasting(self, store)


class Lasting:
    """Retracts rows when their time is over."""

    def __init__(self, spec: LastingSpec, store: ChunkStore) -> None:
        self._length = spec.length
        self._pending = Pending(spec.types, store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return (self._pending.buffer,)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given the rows that have arrived."""
        (changes,) = inputs
        ends = times_of(changes) + self._length + 1
        going = make_changes(row_columns(changes), ends, -diffs_of(changes))
        return self._pending.take([changes, going], frontier)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return self._pending.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._pending.restore(snapshot)

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says."""
        return self._pending.content()

    def take_over(self, old: Sequence[Lasting], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the rows that belong to this bucket."""
        self._pending.take_over([one._pending for one in old], shares[0].require())
