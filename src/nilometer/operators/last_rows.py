"""A leaf of a windowed plan: the last n rows of a stream, until later ones displace them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.admit import Punctuation, admit, drop_late
from nilometer.kernels.arrays import Int64s, as_type
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.rows_window import RowsWindow
from nilometer.model.expressions import Expression
from nilometer.operators.change_operator import StoredChunks, make_changes, no_changes
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.hold_back import HoldBack
from nilometer.operators.open_rows import OpenRows
from nilometer.operators.share import Share, StreamShare


@dataclass(frozen=True)
class LastRowsSpec:
    """A stream, its ROWS window, and the values computed from its rows."""

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
        """The rows that count, and the time information of all of them."""
        return admit(rows, self.layout, selected)

    def start(self, store: ChunkStore) -> RunningLastRows:
        return RunningLastRows(self, store)


class RunningLastRows:
    """A running ROWS window: rows come at their own times, and leave at those of later ones."""

    streams = 1

    def __init__(self, spec: LastRowsSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._hold_back = HoldBack([spec.layout], Kernel.MERGE, store)
        self._open = OpenRows(spec.schema, spec.layout.time, spec.window, store)
        self.late = [0]

    @property
    def rows_held(self) -> list[int]:
        return [self._open.buffer.rows + sum(buffer.rows for buffer in self._hold_back.buffers)]

    @property
    def stored(self) -> Sequence[StoredChunks]:
        return [self._open.buffer, *self._hold_back.buffers]

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
        moved = self._open.slide(ready)
        return [no_changes(self._spec.types), *(self._changes(*one) for one in moved)]

    def _changes(self, rows: pa.RecordBatch, times: Int64s, diff: int) -> pa.RecordBatch:
        values = [
            as_type(evaluate(value, rows.columns, len(rows)), kind)
            for value, kind in zip(self._spec.values, self._spec.types, strict=True)
        ]
        return make_changes(values, times, np.full(len(rows), diff))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        held = self._hold_back.buffers[0].refs
        return {
            "late": self.late,
            "frontier": self._hold_back.frontier,
            "open": self._open.snapshot(),
            "held": [ref.to_json() for ref in held],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self.late = list(snapshot["late"])
        self._hold_back.frontier = snapshot["frontier"]
        self._open.restore(snapshot["open"])
        self._hold_back.buffers[0].restore(ChunkRef(**ref) for ref in snapshot["held"])

    def take_over(
        self, old: Sequence[RunningLastRows], shares: Sequence[StreamShare], output: Share
    ) -> None:
        """Take over, without any state yet, the partitions that belong to this bucket."""
        self.late = [shares[0].late([one.late[0] for one in old])]
        self._hold_back.take_over([one._hold_back for one in old], shares)
        self._open.take_over([one._open for one in old], shares[0])
