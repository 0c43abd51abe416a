"""EMIT CHANGES EVERY: changes take effect at the next multiple of a length of time.

Multiples are counted from 1970-01-01. All waiting changes wait for the same instant, the first
multiple at or after the frontier, so they are kept as net counts of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.gather import join_batches, take
from nilometer.kernels.row_groups import row_groups
from nilometer.model.time import EARLIEST
from nilometer.operators.change_operator import (
    EmitsWithoutInput,
    StoredChunks,
    diffs_of,
    make_changes,
    row_columns,
    times_of,
)
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.net_changes import net_changes
from nilometer.operators.share import Share


@dataclass(frozen=True, slots=True)
class PacedSpec(EmitsWithoutInput):
    """Changes of rows of these types at multiples of this many microseconds."""

    every: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> Paced:
        return Paced(self, store)


class Paced:
    """Holds changes back until no other can take effect at the same instant."""

    def __init__(self, spec: PacedSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._waiting = GroupTable(spec.types, store)
        self._until: int | None = None
        """The instant at which the waiting changes take effect."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return (self._waiting,)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of the input."""
        (changes,) = inputs
        times = self._effective(times_of(changes))
        ready = (times < frontier) | (times == EARLIEST)
        paced = make_changes(row_columns(changes), times, diffs_of(changes))
        out = [paced.take(pa.array(np.flatnonzero(ready))), *self._release(frontier)]
        self._hold(paced.take(pa.array(np.flatnonzero(~ready))))
        return net_changes(join_batches(out))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {"until": self._until, "waiting": [ref.to_json() for ref in self._waiting.refs]}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._until = snapshot["until"]
        self._waiting.restore(ChunkRef(**ref) for ref in snapshot["waiting"])

    def take_over(self, old: Sequence[Paced], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the rows that belong to this bucket."""
        self._until = next((one._until for one in old if one._until is not None), None)
        self._waiting.take_over([one._waiting for one in old], shares[0].require())

    def _effective(self, times: Int64s) -> Int64s:
        every = self._spec.every
        return np.where(times == EARLIEST, EARLIEST, -(-times // every) * every)

    def _release(self, frontier: int) -> list[pa.RecordBatch]:
        if self._until is None or self._until >= frontier:
            return []
        rows = self._waiting.contents()
        times = np.full(len(rows), self._until, np.int64)
        self._waiting.clear()
        self._until = None
        return [make_changes(rows.keys, times, rows.value("n"))]

    def _hold(self, changes: pa.RecordBatch) -> None:
        if not len(changes):
            return
        self._until = int(times_of(changes)[0])
        groups = row_groups(row_columns(changes), len(changes))
        counts = Groups(groups.ids, (), self._waiting.lookup(groups.ids)).value("n")
        np.add.at(counts, groups.numbers, diffs_of(changes))
        rows = [canonical(take(column, groups.firsts)) for column in row_columns(changes)]
        self._waiting.update(Groups(groups.ids, rows, {"n": counts}))
