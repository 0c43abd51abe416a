"""A leaf of a windowed plan: results of a window join, each with the period in which it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.admit import Punctuation, admit
from nilometer.kernels.arrays import Int64s, as_int64
from nilometer.kernels.chunk import Kernel, RowLayout, make_chunk
from nilometer.kernels.row_errors import Rows, compute
from nilometer.model.expressions import Expression
from nilometer.model.time import FOREVER, LATEST
from nilometer.operators.change_operator import TIME, StoredChunks
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content, content_of, rows_content
from nilometer.operators.share import Share, StreamShare, take_over
from nilometer.operators.single_stream import SingleStream
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER
from nilometer.operators.window_join import WindowJoin, WindowJoinSpec

UNTIL: Final = "_until"


@dataclass(frozen=True)
class BlockSpec:
    """A window join, the values computed from its results, and how long these hold."""

    join: WindowJoinSpec
    values: tuple[Expression, ...]
    """Over the time of a result and the join's output columns."""
    types: tuple[pa.DataType, ...]
    lifetimes: tuple[tuple[tuple[int, ...], int], ...]
    """(arguments that are times, length): a result holds for that long after the latest."""
    names: tuple[str, ...] = ()
    """The names of the arguments of the values."""
    until: int | None = None
    """The argument that holds the instant at which a row of the only stream is retracted."""

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        return self.join.schemas

    @property
    def layouts(self) -> tuple[RowLayout, ...]:
        return self.join.layouts

    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]:
        """The relevant rows of a stream, and the time information of all of them."""
        end = None if self.until is None else self.until - 1
        return admit(rows, self.layouts[stream], selected, end=end)

    def start(self, store: ChunkStore) -> RunningBlock:
        return RunningBlock(self, store)


class RunningBlock:
    """A running block."""

    def __init__(self, spec: BlockSpec, store: ChunkStore) -> None:
        self._spec = spec
        self.streams = len(spec.schemas)
        self.join: SingleStream | WindowJoin = (
            SingleStream(spec.join) if self.streams == 1 else WindowJoin(spec.join, store)
        )
        self._waiting = [
            StreamBuffer(RowLayout(layout.time, ()), Kernel.MERGE, store) for layout in spec.layouts
        ]

    @property
    def late(self) -> list[int]:
        return self.join.late

    @property
    def rows_held(self) -> list[int]:
        waiting = [buffer.rows for buffer in self._waiting]
        return [a + b for a, b in zip(self.join.rows_held, waiting, strict=True)]

    @property
    def stored(self) -> Sequence[StoredChunks]:
        return [*self.join.stored, *self._waiting]

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Add rows that existed before the query started."""
        if len(rows):
            layout = RowLayout(self._spec.layouts[stream].time, ())
            self._waiting[stream].add(make_chunk(rows, layout, Kernel.MERGE))

    def process(
        self,
        rows: Sequence[pa.RecordBatch],
        before: Sequence[int],
        after: Sequence[int],
        frontier: int,
    ) -> list[pa.RecordBatch]:
        """New results with `_time` and `_until`, given the watermarks before and after.

        They are emitted at once, whatever the frontier: their periods say when they hold.
        """
        rows, before = list(rows), list(before)
        for i, buffer in enumerate(self._waiting):
            if buffer.refs:
                waited = [chunk.rows for chunk in buffer.chunks()]
                rows[i] = pa.concat_batches([*waited, rows[i]])
                before[i] = NEVER
                buffer.expire(FOREVER)
        return [self._finish(result) for result in self.join.process(rows, before, after)]

    def _finish(self, result: pa.RecordBatch) -> pa.RecordBatch:
        rows = Rows(result.columns, len(result), self._spec.names)
        values, computable = compute(
            list(zip(self._spec.values, self._spec.types, strict=True)), rows
        )
        if computable is not None:
            result = result.take(pa.array(computable))
        times = as_int64(result.column(0))
        if self._spec.until is not None:  # a row that ends where it begins never holds
            lasts = as_int64(result.column(self._spec.until)) > times
            result, values = result.filter(lasts), [one.filter(lasts) for one in values]
            times = times[lasts]
        arrays = [*values, pa.array(times), pa.array(self._ends(result.columns, times))]
        names = [f"c{i}" for i in range(len(values))]
        return pa.RecordBatch.from_arrays(arrays, [*names, TIME, UNTIL])

    def _ends(self, columns: Sequence[pa.Array], times: Int64s) -> Int64s:
        ends = np.full(len(times), FOREVER)
        for places, length in self._spec.lifetimes:
            latest = as_int64(columns[places[0]])
            for place in places[1:]:
                latest = np.maximum(latest, as_int64(columns[place]))
            np.minimum(ends, latest + (length + 1), out=ends)
        if self._spec.until is not None:
            np.minimum(ends, as_int64(columns[self._spec.until]), out=ends)
        ends[ends > LATEST] = FOREVER  # no answer can be requested there
        return ends

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        waiting = [[ref.to_json() for ref in buffer.refs] for buffer in self._waiting]
        return {"join": self.join.snapshot(), "waiting": waiting}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self.join.restore(snapshot["join"])
        for buffer, refs in zip(self._waiting, snapshot["waiting"], strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says."""
        waiting = [[chunk.rows for chunk in buffer.chunks()] for buffer in self._waiting]
        return content_of(self.join, marks), tuple(map(rows_content, waiting))

    def take_over(
        self, old: Sequence[RunningBlock], shares: Sequence[StreamShare], output: Share
    ) -> None:
        """Take over, without any state yet, what belongs to this bucket."""
        take_over(self.join, [one.join for one in old], shares)
        for i, (buffer, share) in enumerate(zip(self._waiting, shares, strict=True)):
            buffer.take_over([one._waiting[i] for one in old], share)
