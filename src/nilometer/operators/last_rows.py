"""A leaf of a windowed plan: the last n rows of a stream, until later ones displace them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.admit import Punctuation, admit, drop_late
from nilometer.kernels.arrays import Bools, Int64s, as_type
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, make_chunk
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.rows_window import OPEN, RowsWindow, is_open, slide
from nilometer.model.expressions import Expression
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.change_operator import Stored, make_changes, no_changes
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.hold_back import HoldBack
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER


@dataclass(frozen=True)
class LastRowsSpec:
    """A stream, its ROWS window, and what is computed of its rows."""

    schema: pa.Schema
    layout: RowLayout
    window: RowsWindow
    values: tuple[Expression, ...]
    """Over the columns of the stream."""
    types: tuple[pa.DataType, ...]

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        return (self.schema,)

    @property
    def layouts(self) -> tuple[RowLayout, ...]:
        return (self.layout,)

    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]:
        """The rows that count, and what all of them say about time."""
        return admit(rows, self.layout, selected)

    def start(self, store: ChunkStore) -> LastRows:
        return LastRows(self, store)


class LastRows:
    """A running ROWS window: rows come at their own times and go at those of later ones."""

    streams = 1

    def __init__(self, spec: LastRowsSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._layout = replace(spec.layout, until=len(spec.schema))
        self._hold_back = HoldBack([spec.layout], Kernel.MERGE, store)
        self._open = StreamBuffer(self._layout, Kernel.MERGE, store)
        self.late = [0]

    @property
    def rows_held(self) -> list[int]:
        return [self._open.rows + sum(buffer.rows for buffer in self._hold_back.buffers)]

    @property
    def stored(self) -> Sequence[Stored]:
        return [self._open, *self._hold_back.buffers]

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Take in rows that were there before the query started."""
        self._hold_back.hold(stream, rows)

    def process(
        self,
        rows: Sequence[pa.RecordBatch],
        before: Sequence[int],
        after: Sequence[int],
        frontier: int,
    ) -> list[pa.RecordBatch]:
        """The changes strictly before the frontier, given the watermark before these rows."""
        accepted, late = drop_late(rows[0], self._spec.layout, before[0])
        self.late[0] += late
        ready = self._hold_back.release([accepted], frontier)[0]
        if not len(ready):
            return [no_changes(self._spec.types)]
        old = self._open.chunks()
        changed, new = slide(old, ready, self._layout, self._spec.window)
        gone = [self._displaced(was, now) for was, now in zip(old, changed, strict=True)]
        self._retain(changed, new)
        return [*gone, *self._arrived(new)]

    def _displaced(self, was: Chunk, now: Chunk) -> pa.RecordBatch:
        if now is was:
            return no_changes(self._spec.types)
        assert was.until is not None
        assert now.until is not None
        closed = (was.until == OPEN) & (now.until != OPEN)
        return self._changes(now.rows, closed, now.until, -1)

    def _arrived(self, new: pa.RecordBatch) -> list[pa.RecordBatch]:
        times, ends = self._layout.times(new), self._layout.untils(new)
        assert ends is not None
        shown = (ends > times) & (ends >= EARLIEST)
        return [
            self._changes(new, shown, times, 1),
            self._changes(new, shown & (ends < FOREVER), ends, -1),
        ]

    def _changes(
        self, rows: pa.RecordBatch, chosen: Bools, times: Int64s, diff: int
    ) -> pa.RecordBatch:
        places = np.flatnonzero(chosen)
        columns = rows.take(pa.array(places)).columns
        values = [
            as_type(evaluate(value, columns, len(places)), kind)
            for value, kind in zip(self._spec.values, self._spec.types, strict=True)
        ]
        return make_changes(values, times[places], np.full(len(places), diff))

    def _retain(self, changed: Sequence[Chunk], new: pa.RecordBatch) -> None:
        self._open.revise(changed, _is_open)
        chunk = make_chunk(new, self._layout, Kernel.MERGE)
        alive = _is_open(chunk)
        if alive.any():
            rows = new if alive.all() else chunk.rows.take(pa.array(np.flatnonzero(alive)))
            self._open.add(make_chunk(rows, self._layout, Kernel.MERGE))
        self._open.tidy(NEVER, 0, _is_open)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        held = self._hold_back.buffers[0].refs
        return {
            "late": self.late,
            "frontier": self._hold_back.frontier,
            "open": [ref.to_json() for ref in self._open.refs],
            "held": [ref.to_json() for ref in held],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self.late = list(snapshot["late"])
        self._hold_back.frontier = snapshot["frontier"]
        self._open.restore(ChunkRef(**ref) for ref in snapshot["open"])
        self._hold_back.buffers[0].restore(ChunkRef(**ref) for ref in snapshot["held"])


def _is_open(chunk: Chunk) -> Bools:
    assert chunk.until is not None
    return is_open(chunk.until)
