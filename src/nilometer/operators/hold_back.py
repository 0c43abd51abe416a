"""Rows that ROWS windows are not ready for: held back until no earlier row can arrive.

Which rows are the last n at an instant is known once all streams with ROWS windows have passed
it. Rows strictly before that frontier are released, each once; the others wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools
from nilometer.kernels.chunk import Kernel, RowLayout, make_chunk
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.share import RowChooser
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER


class HoldBack:
    """The rows of every stream at or after the frontier."""

    def __init__(self, layouts: Sequence[RowLayout], kernel: Kernel, store: ChunkStore) -> None:
        """Buffers for rows of these layouts."""
        self.frontier = NEVER
        self._layouts = tuple(layouts)
        self._kernel = kernel
        self.buffers = tuple(StreamBuffer(layout, kernel, store) for layout in layouts)

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Hold rows back, all of them at or after the frontier."""
        if len(rows):
            chunk = make_chunk(rows, self._layouts[stream], self._kernel)
            self.buffers[stream].add(chunk)

    def take_over(self, old: Sequence[HoldBack], shares: Sequence[RowChooser]) -> None:
        """Take over the rows of every stream that belong here."""
        self.frontier = min(one.frontier for one in old)
        for i, (buffer, share) in enumerate(zip(self.buffers, shares, strict=False)):
            buffer.take_over([one.buffers[i] for one in old], share, self.frontier)

    def release(self, rows: Sequence[pa.RecordBatch], frontier: int) -> list[pa.RecordBatch]:
        """The rows strictly before a new frontier, of these and of those held; hold the rest."""
        released = [self._release(i, new, frontier) for i, new in enumerate(rows)]
        self.frontier = frontier
        return released

    def _release(self, stream: int, new: pa.RecordBatch, frontier: int) -> pa.RecordBatch:
        buffer = self.buffers[stream]
        ready = [
            _take(chunk.rows, (chunk.times >= self.frontier) & (chunk.times < frontier))
            for chunk in buffer.chunks(before=frontier)
        ]
        early = self._layouts[stream].times(new) < frontier
        ready.append(_take(new, early))
        self.hold(stream, _take(new, ~early))
        buffer.expire(frontier)
        held_now = int(len(new) - np.count_nonzero(early))
        buffer.tidy(frontier, held_now, lambda chunk: chunk.times >= frontier)
        return pa.concat_batches(ready)


def _take(rows: pa.RecordBatch, chosen: Bools) -> pa.RecordBatch:
    return rows if chosen.all() else rows.take(pa.array(np.flatnonzero(chosen)))
