"""Rows in time windows: each is emitted when its window ends, or holds until then.

Where windows are answered at their ends, a row holds for that one instant, and the operator
above computes the answer of each window once. Otherwise a row holds from its own time until its
window ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.chunk import Kernel, RowLayout, make_chunk
from nilometer.kernels.cut_time import CutRows, cut_time
from nilometer.kernels.row_groups import row_groups
from nilometer.model.time_windows import HoppingWindows, SessionWindows, TimeWindows
from nilometer.operators.change_operator import (
    EmitsWithoutInput,
    StoredChunks,
    diffs_of,
    make_changes,
    row_columns,
    times_of,
)
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content, rows_content
from nilometer.operators.pending import Pending
from nilometer.operators.share import Share
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.watermarks import NEVER


@dataclass(frozen=True, slots=True)
class WindowRowsSpec(EmitsWithoutInput):
    """Append-only rows, emitted with the starts and ends of their windows appended."""

    windows: TimeWindows
    keys: tuple[int, ...]
    """The columns by which sessions are separated."""
    at_ends: bool
    """Whether rows hold only at the instant when their windows end, so that none is retracted."""
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> WindowRows:
        return WindowRows(self, store)


class WindowRows:
    """Rows until their windows have ended."""

    def __init__(self, spec: WindowRowsSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._pending = Pending(spec.types, store)
        self._open: OpenSessions | None = None
        if isinstance(spec.windows, SessionWindows):
            self._open = OpenSessions(spec.windows, spec.keys, len(spec.types) - 2, store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return (self._pending.buffer, *(() if self._open is None else (self._open.buffer,)))

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given the rows that have arrived."""
        (changes,) = inputs
        if self._open is not None:
            changes, cut = self._open.close(changes, frontier)
        else:
            assert not isinstance(self._spec.windows, SessionWindows)
            cut = cut_time(times_of(changes), self._spec.windows)
        return self._pending.take(self._placed(changes, cut), frontier)

    def _placed(self, changes: pa.RecordBatch, cut: CutRows) -> list[pa.RecordBatch]:
        """Rows as they are added and retracted with their windows."""
        kinds = self._spec.types[-2:]
        bounds = zip((cut.starts, cut.ends), kinds, strict=True)
        columns, times, diffs = row_columns(changes), times_of(changes), diffs_of(changes)
        if not self._is_each_once(cut, len(changes)):
            columns = [column.take(pa.array(cut.rows)) for column in columns]
            times, diffs = times[cut.rows], diffs[cut.rows]
        columns = [*columns, *(pa.array(instants).cast(kind) for instants, kind in bounds)]
        comes = cut.ends if self._spec.at_ends else times
        coming = make_changes(columns, comes, diffs)
        return [coming] if self._spec.at_ends else [coming, make_changes(columns, cut.ends, -diffs)]

    def _is_each_once(self, cut: CutRows, rows: int) -> bool:
        """Whether rows and windows are one to one, in order, so that no row has to be copied."""
        windows = self._spec.windows
        hops = isinstance(windows, HoppingWindows) and windows.slide != windows.size
        return not hops and self._open is None and len(cut.rows) == rows

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        opened = None if self._open is None else self._open.snapshot()
        return {"pending": self._pending.snapshot(), "open": opened}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._pending.restore(snapshot["pending"])
        if self._open is not None:
            self._open.restore(snapshot["open"])

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says."""
        opened = () if self._open is None else self._open.buffer.chunks()
        return self._pending.content(), rows_content([chunk.rows for chunk in opened])

    def take_over(self, old: Sequence[WindowRows], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the rows that belong to this bucket."""
        share = shares[0].require()
        self._pending.take_over([one._pending for one in old], share)
        if self._open is not None:
            opened = [one._open.buffer for one in old if one._open is not None]
            self._open.buffer.take_over(opened, share)


class OpenSessions:
    """The rows of sessions that have not ended."""

    def __init__(
        self, windows: SessionWindows, keys: Sequence[int], columns: int, store: ChunkStore
    ) -> None:
        self._gap = windows.gap
        self._keys = keys
        self._layout = RowLayout(columns, ())
        self.buffer = StreamBuffer(self._layout, Kernel.MERGE, store)

    def close(self, changes: pa.RecordBatch, frontier: int) -> tuple[pa.RecordBatch, CutRows]:
        """The rows whose sessions end before the frontier; those of others are kept."""
        held = [chunk.rows for chunk in self.buffer.chunks()]
        rows = pa.concat_batches([changes, *held]) if held else changes
        times = times_of(rows)
        starts, ends = self._sessions(rows, times)
        ended = ends < frontier
        if held and not ended.any():  # stored rows stay as they are
            self._keep(changes)
        else:
            self.buffer.replace(())
            self._keep(rows.take(pa.array(np.flatnonzero(~ended))))
        done = np.flatnonzero(ended)
        return rows, CutRows(done, starts[done], ends[done])

    def _sessions(self, rows: pa.RecordBatch, times: Int64s) -> tuple[Int64s, Int64s]:
        """The start and the end of each row's session."""
        if not len(rows):
            return times, times
        keys = [row_columns(rows)[place] for place in self._keys]
        groups = row_groups(keys, len(rows)).numbers if keys else np.zeros(len(rows), np.int64)
        order = np.lexsort((times, groups))
        sorted_times, sorted_groups = times[order], groups[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = np.diff(sorted_groups) != 0
        begins[1:] |= np.diff(sorted_times) > self._gap
        number = np.cumsum(begins) - 1
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(order)) - 1
        starts, ends = np.empty_like(times), np.empty_like(times)
        starts[order] = sorted_times[firsts][number]
        ends[order] = sorted_times[lasts][number] + self._gap
        return starts, ends

    def _keep(self, rows: pa.RecordBatch) -> None:
        if len(rows):
            self.buffer.add(make_chunk(rows, self._layout, Kernel.MERGE))
        self.buffer.tidy(NEVER, len(rows), lambda chunk: np.ones(len(chunk), np.bool_))

    def snapshot(self) -> list[dict[str, Any]]:
        """What `restore` needs, apart from the chunks in the store."""
        return [ref.to_json() for ref in self.buffer.refs]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self.buffer.restore(ChunkRef(**ref) for ref in snapshot)
