"""Changes that are known before they take effect: kept until the frontier has passed them.

Most are the ends of windows. They are added and taken in about the same order, so a chunk is
read in one place when its time has come, and the cost of a period is that of its own changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Bools
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, make_chunk
from nilometer.kernels.gather import join_batches
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import no_changes, times_of
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content, rows_content
from nilometer.operators.share import RowChooser
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER

_MOST_ROWS: Final = 1 << 15
"""Chunks of this many rows are no longer merged: each is read only when its time has come."""


class Pending:
    """Changes at or after the frontier."""

    def __init__(self, types: Sequence[pa.DataType], store: ChunkStore) -> None:
        self._types = tuple(types)
        self._layout = RowLayout(len(types), ())
        self._frontier = NEVER
        self.buffer = StreamBuffer(self._layout, Kernel.MERGE, store, max_rows=_MOST_ROWS)

    def take(self, new: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """All changes strictly before a new frontier, of these and of those kept; keep the rest."""
        ready = [
            _between(chunk, self._frontier, frontier)
            for chunk in self.buffer.chunks(before=frontier)
        ]
        later = []
        for changes in new:
            early, late = _split(changes, times_of(changes) < frontier)
            ready.append(early)
            if len(late):
                later.append(late)
        self._keep(later, frontier)
        some = [changes for changes in ready if len(changes)]
        return join_batches(some) if some else no_changes(self._types)

    def _keep(self, kept: list[pa.RecordBatch], frontier: int) -> None:
        for changes in kept:
            self.buffer.add(make_chunk(changes, self._layout, Kernel.MERGE))
        self.buffer.expire(frontier)
        added = sum(map(len, kept))
        self.buffer.tidy(frontier, added, lambda chunk: chunk.times >= frontier)
        self._frontier = frontier

    def content(self) -> Content:
        """What it keeps, however it is cut."""
        first = self._frontier
        parts = [_between(chunk, first, FOREVER + 1) for chunk in self.buffer.chunks()]
        return first, rows_content(parts)

    def take_over(self, old: Sequence[Pending], share: RowChooser) -> None:
        """Take over what belongs here of changes that have not taken effect."""
        self._frontier = min(one._frontier for one in old)
        self.buffer.take_over([one.buffer for one in old], share, self._frontier)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "frontier": self._frontier,
            "changes": [ref.to_json() for ref in self.buffer.refs],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._frontier = snapshot["frontier"]
        self.buffer.restore(ChunkRef(**ref) for ref in snapshot["changes"])


def _between(chunk: Chunk, first: int, last: int) -> pa.RecordBatch:
    low, high = np.searchsorted(chunk.times, (first, last), "left")
    return chunk.rows.slice(low, high - low)


def _split(changes: pa.RecordBatch, early: Bools) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The early changes and the others, without copies where all early ones come first."""
    count = int(np.count_nonzero(early))
    if early[:count].all():
        return changes.slice(0, count), changes.slice(count)
    chosen = pa.array(early)
    return changes.filter(chosen), changes.filter(pc.invert(chosen))
