"""The rows behind the tuples of one stream: those that are waiting, those in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s, as_int64
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, keep_rows, make_chunk
from nilometer.kernels.rows_window import RowsWindow, fit_to_join, window_order
from nilometer.kernels.window_join import Side
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.hold_back import HoldBack
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER
from nilometer_papers.algorithms.conditions import Condition
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.algorithms.tuple_keys import tuple_keys


class HostedRows:
    """Rows become tuples when they are due, and stay for as long as an algorithm refers to them.

    A row is due when its stream's watermark has reached it; where a ROWS window orders rows of
    equal time, when it has passed it. Then it gets a number, which is stored with it, after its
    columns.
    """

    def __init__(
        self,
        stream: int,
        layout: RowLayout,
        condition: Condition,
        store: ChunkStore,
        window: RowsWindow | None = None,
    ) -> None:
        """An empty buffer for the stream at this position of the join."""
        self._window = window
        self._stream = stream
        self._layout = layout
        self._condition = condition
        timed = RowLayout(layout.time, ())
        self._waiting = HoldBack((timed,), Kernel.MERGE, store)
        self._used = StreamBuffer(timed, Kernel.NESTED, store)
        self._timed = timed
        self._next = 0

    @property
    def buffers(self) -> tuple[StreamBuffer, ...]:
        """The buffers that hold the rows."""
        return *self._waiting.buffers, self._used

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(buffer.rows for buffer in self.buffers)

    def wait(self, rows: pa.RecordBatch) -> None:
        """Add rows before the first tuple is taken."""
        self._waiting.hold(0, rows)

    def take(self, rows: pa.RecordBatch, watermark: int) -> tuple[list[StreamTuple], Side]:
        """The tuples that are due after these rows have arrived, in any order, and all rows in use.

        No tuple that becomes due later is earlier.
        """
        due = self._due(rows, watermark)
        numbers = np.arange(self._next, self._next + len(due))
        self._next += len(due)
        arrays = [*due.columns, pa.array(numbers)]
        numbered = pa.RecordBatch.from_arrays(arrays, [*due.schema.names, "number"])
        new = make_chunk(numbered, self._timed, Kernel.NESTED) if len(numbered) else None
        return self._tuples(numbered), Side(self._used.chunks(), new)

    def fit(self, side: Side) -> Bools | None:
        """Which rows in use may join, where others count, too; None if all may."""
        window, keys = self._window, self._layout.key_columns
        if window is None:
            return None
        return np.concatenate([fit_to_join(chunk.rows, keys, window) for chunk in side.chunks])

    def keep(self, side: Side, numbers: Int64s) -> None:
        """Keep the rows with these numbers, of all rows in use."""

        def is_used(chunk: Chunk) -> Bools:
            used: Bools = np.isin(numbers_of(chunk), numbers)
            return used

        self._used.revise(side.old, is_used)
        if side.new is not None and (used := is_used(side.new)).any():
            self._used.add(side.new if used.all() else keep_rows(side.new, used))
        self._used.tidy(NEVER, 0, is_used)

    def in_use(self) -> dict[int, StreamTuple]:
        """The tuples of all rows in use, by number."""
        chunks = self._used.chunks()
        return {one.number: one for chunk in chunks for one in self._tuples(chunk.rows)}

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "next": self._next,
            "frontier": self._waiting.frontier,
            "chunks": [[ref.to_json() for ref in buffer.refs] for buffer in self.buffers],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._next, self._waiting.frontier = snapshot["next"], snapshot["frontier"]
        for buffer, refs in zip(self.buffers, snapshot["chunks"], strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)

    def _due(self, rows: pa.RecordBatch, watermark: int) -> pa.RecordBatch:
        if self._window is None:
            return self._waiting.release([rows], watermark + 1)[0]
        due = self._waiting.release([rows], watermark)[0]
        return due.take(pa.array(window_order(due, self._layout.times(due), self._window)))

    def _tuples(self, rows: pa.RecordBatch) -> list[StreamTuple]:
        times, numbers = self._layout.times(rows).tolist(), rows.columns[-1].to_pylist()
        keys = tuple_keys(rows, self._layout, self._condition)
        fields = zip(times, keys, numbers, strict=True)
        return [StreamTuple(time, key, self._stream, number) for time, key, number in fields]


def numbers_of(chunk: Chunk) -> Int64s:
    """The numbers of the rows of a chunk."""
    return as_int64(chunk.rows.columns[-1])


def places_of(numbers: Sequence[int], side: Side) -> Int64s:
    """The indexes of the rows with these numbers among all rows in use."""
    every = np.concatenate([numbers_of(chunk) for chunk in side.chunks])
    order = np.argsort(every)
    places: Int64s = order[np.searchsorted(every[order], numbers)]
    return places
