"""The rows of a ROWS window: added at their own times, retracted at those of later ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, make_chunk
from nilometer.kernels.rows_window import OPEN, RowsWindow, is_open, slide
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.share import RowChooser
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER

Moved: TypeAlias = tuple[pa.RecordBatch, Int64s, int]
"""Rows, the times at which they are added or retracted, and which of the two (1 or -1)."""


class OpenRows:
    """The last rows of a stream, or of each of its partitions."""

    def __init__(self, schema: pa.Schema, time: int, window: RowsWindow, store: ChunkStore) -> None:
        """A window of rows of this schema, whose times are in the column `time`."""
        self._window = window
        self._layout = RowLayout(time, (), until=len(schema))
        self.buffer = StreamBuffer(self._layout, Kernel.MERGE, store)

    def slide(self, rows: pa.RecordBatch) -> Iterator[Moved]:
        """Add rows that are all later than those held; returns what is added and retracted."""
        if not len(rows):
            return
        old = self.buffer.chunks()
        changed, new = slide(old, rows, self._layout, self._window)
        for was, now in zip(old, changed, strict=True):
            yield from self._displaced(was, now)
        yield from self._arrived(new)
        self._retain(changed, new)

    def _displaced(self, was: Chunk, now: Chunk) -> Iterator[Moved]:
        if now is was:
            return
        assert was.until is not None
        assert now.until is not None
        yield self._moved(now.rows, (was.until == OPEN) & (now.until != OPEN), now.until, -1)

    def _arrived(self, new: pa.RecordBatch) -> Iterator[Moved]:
        times, ends = self._layout.times(new), self._layout.untils(new)
        assert ends is not None
        shown = (ends > times) & (ends >= EARLIEST)
        yield self._moved(new, shown, times, 1)
        yield self._moved(new, shown & (ends < FOREVER), ends, -1)

    def _moved(self, rows: pa.RecordBatch, chosen: Bools, times: Int64s, diff: int) -> Moved:
        places = np.flatnonzero(chosen)
        return rows.take(pa.array(places)), times[places], diff

    def _retain(self, changed: Sequence[Chunk], new: pa.RecordBatch) -> None:
        self.buffer.revise(changed, _is_open)
        chunk = make_chunk(new, self._layout, Kernel.MERGE)
        alive = _is_open(chunk)
        if alive.any():
            rows = chunk.rows if alive.all() else chunk.rows.take(pa.array(np.flatnonzero(alive)))
            self.buffer.add(make_chunk(rows, self._layout, Kernel.MERGE))
        self.buffer.tidy(NEVER, 0, _is_open)

    def take_over(self, old: Sequence[OpenRows], share: RowChooser) -> None:
        """Take over the partitions that belong here."""
        self.buffer.take_over([one.buffer for one in old], share)

    def snapshot(self) -> list[dict[str, Any]]:
        """What `restore` needs, apart from the chunks in the store."""
        return [ref.to_json() for ref in self.buffer.refs]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self.buffer.restore(ChunkRef(**ref) for ref in snapshot)


def _is_open(chunk: Chunk) -> Bools:
    assert chunk.until is not None
    return is_open(chunk.until)
