"""The W-join as an operator: buffers, expiry, snapshot and restore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.admit import Punctuation, admit, drop_late
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, keep_rows, make_chunk
from nilometer.kernels.indexes import NO_HASHES, Probes
from nilometer.kernels.key_hashes import is_exact
from nilometer.kernels.rows_window import RowsWindow, is_open, slide
from nilometer.kernels.window_join import JoinRule, Residual, Side, Tuples, join_new_rows, pick
from nilometer.model.join_cost import StreamLoad
from nilometer.model.network import TimeNetwork
from nilometer.model.time import EARLIEST, FOREVER, LATEST
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content, NoContentError, rows_content
from nilometer.operators.hold_back import HoldBack
from nilometer.operators.join_orders import ASSUMED_DISTINCT, JoinOrders, assume_load
from nilometer.operators.share import StreamShare
from nilometer.operators.stream_buffer import StreamBuffer

_ALL_OF_TIME: Final = LATEST - EARLIEST
"""A bound of this length excludes nothing; unlike FOREVER it can be added to any time."""


@dataclass(frozen=True)
class WindowJoinSpec:
    """The spec of a W-join: its streams, windows, keys and predicates."""

    network: TimeNetwork
    schemas: tuple[pa.Schema, ...]
    layouts: tuple[RowLayout, ...]
    output: tuple[tuple[int, int], ...]
    """(stream, column) of each column of a result; its time comes first."""
    kernel: Kernel = Kernel.HASH
    residuals: tuple[Residual, ...] = ()
    rows: tuple[RowsWindow | None, ...] = ()
    """The ROWS window of each stream that has one; empty where none has."""
    loads: tuple[StreamLoad, ...] = ()
    """What is known about the streams, for the first choice of join orders."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.network.streams

    @property
    def static(self) -> frozenset[int]:
        """The streams that are static tables."""
        return frozenset(i for i, name in enumerate(self.names) if name in self.network.static)

    @property
    def rule(self) -> JoinRule:
        bounds = [tuple(min(bound, _ALL_OF_TIME) for bound in row) for row in self.network.closed]
        keys = tuple(layout.keys for layout in self.layouts)
        exact = tuple(self._is_exact(k) for k in range(len(keys[0])))
        return JoinRule(tuple(bounds), keys, exact, self.residuals)

    @property
    def rows_windows(self) -> dict[int, RowsWindow]:
        """The ROWS windows, by stream."""
        return {i: window for i, window in enumerate(self.rows) if window is not None}

    @property
    def stored_layouts(self) -> tuple[RowLayout, ...]:
        """The layouts of stored chunks: rows that may join, then, with ROWS windows, held ones."""
        counted = self.rows_windows
        joined = tuple(
            replace(layout, until=len(self.schemas[i])) if i in counted else layout
            for i, layout in enumerate(self.layouts)
        )
        held = tuple(RowLayout(layout.time, ()) for layout in self.layouts) if counted else ()
        return joined + held

    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]:
        """The rows of a stream relevant to the join, and the time information of all of them."""
        counted = bool(self.rows) and self.rows[stream] is not None
        return admit(rows, self.layouts[stream], selected, keep_null_keys=counted)

    @property
    def links(self) -> list[frozenset[int]]:
        """The streams that each key links."""
        return [
            frozenset(i for i, layout in enumerate(self.layouts) if layout.keys[key] is not None)
            for key in range(len(self.layouts[0].keys))
        ]

    @property
    def known_loads(self) -> Sequence[StreamLoad]:
        """The loads, assumed where none is declared."""
        distinct = (ASSUMED_DISTINCT,) * len(self.links)
        streams = range(len(self.layouts))
        return self.loads or [assume_load(self.network, i, distinct) for i in streams]

    def start(self, store: ChunkStore) -> WindowJoin:
        """The running operator, with empty buffers."""
        return WindowJoin(self, store)

    def _is_exact(self, key: int) -> bool:
        """Whether equal hashes of a key mean equal values; all streams have it in equal types."""
        sides = zip(self.schemas, self.layouts, strict=True)
        schema, columns = next((s, own) for s, at in sides if (own := at.keys[key]) is not None)
        return is_exact([schema.field(c).type for c in columns])


class WindowJoin:
    """A running W-join: results of rows as they arrive, once each; `_time` is their latest time."""

    def __init__(self, spec: WindowJoinSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._rule = spec.rule
        self._windows = spec.rows_windows
        self._streams = range(len(spec.layouts))
        self._layouts = spec.stored_layouts
        self.buffers = tuple(
            StreamBuffer(self._layouts[i], spec.kernel, store) for i in self._streams
        )
        held = self._layouts[len(spec.layouts) :]
        self._hold_back = HoldBack(held, spec.kernel, store)
        self.late = [0] * len(spec.layouts)
        """Rows of each stream dropped because they were late, since it first started."""
        self.orders = JoinOrders(spec.known_loads, spec.links, spec.kernel, spec.residuals)

    @property
    def stored(self) -> tuple[StreamBuffer, ...]:
        """All buffers: of rows that may still join, and of rows held back for ROWS windows."""
        return self.buffers + self._hold_back.buffers

    @property
    def rows_held(self) -> list[int]:
        """How many rows of each stream are stored."""
        stored, streams = self.stored, len(self._streams)
        return [sum(buffer.rows for buffer in stored[i::streams]) for i in self._streams]

    def process(
        self, rows: Sequence[pa.RecordBatch], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The results of a micro-batch, given the watermarks before and after it.

        Rows strictly earlier than their stream's watermark before the micro-batch are late:
        dropped and counted. The buffers are brought up to date once the results are consumed.
        """
        accepted = [self._accept(i, batch, before[i]) for i, batch in enumerate(rows)]
        if self._windows:
            frontier = min(after[i] for i in self._windows)
            accepted = self._hold_back.release(accepted, frontier)
            static = self._spec.network.static
            names = self._spec.network.streams
            after = [
                mark if name in static else min(mark, frontier)
                for name, mark in zip(names, after, strict=True)
            ]
        sides = [self._side(i, batch) for i, batch in enumerate(accepted)]
        orders = self.orders.update(sides)
        for tuples in join_new_rows(sides, self._rule, orders):
            yield self._result(tuples, sides)
        self._retain(sides, after)

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Take in rows that were there before the query started."""
        if self._windows:
            self._hold_back.hold(stream, rows)
        elif len(rows):
            self.buffers[stream].add(make_chunk(rows, self._layouts[stream], self._spec.kernel))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "buffers": [[ref.to_json() for ref in buffer.refs] for buffer in self.stored],
            "frontier": self._hold_back.frontier,
            "late": list(self.late),
            "orders": self.orders.to_json(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for buffer, refs in zip(self.stored, snapshot["buffers"], strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)
        self._hold_back.frontier = snapshot["frontier"]
        self.late = list(snapshot["late"])
        self.orders.restore(snapshot["orders"])

    def take_over(self, old: Sequence[WindowJoin], shares: Sequence[StreamShare]) -> None:
        """Take over, without any state yet, what belongs to this bucket; a share per stream."""
        for i, share in enumerate(shares):
            self.buffers[i].take_over([one.buffers[i] for one in old], share)
            self.late[i] = share.late([one.late[i] for one in old])
        self._hold_back.take_over([one._hold_back for one in old], shares)
        self.orders.restore(old[0].orders.to_json())

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says: the rows that may still be part of a new result.

        Others may still be held, until it turns out that no held row can join them.
        """
        if self._windows:
            raise NoContentError("a ROWS window")
        horizons = [self._spec.network.horizon(i, marks) for i in self._streams]
        chunks = [list(buffer.chunks()) for buffer in self.buffers]
        rows, before = sum(map(len, (c for own in chunks for c in own))), -1
        while rows != before:
            for i in self._streams:
                survivors = [
                    (c, self._survivors(i, horizons[i], marks, c, chunks)) for c in chunks[i]
                ]
                chunks[i] = [keep_rows(chunk, alive) for chunk, alive in survivors if alive.any()]
            rows, before = sum(map(len, (c for own in chunks for c in own))), rows
        return tuple(rows_content([chunk.rows for chunk in own]) for own in chunks)

    def _accept(self, stream: int, rows: pa.RecordBatch, watermark: int) -> pa.RecordBatch:
        accepted, late = drop_late(rows, self._layouts[stream], watermark)
        self.late[stream] += late
        return accepted

    def _side(self, stream: int, rows: pa.RecordBatch) -> Side:
        """The input of a stream to the join: old rows and these new ones."""
        old, layout = self.buffers[stream].chunks(), self._layouts[stream]
        if stream in self._windows:
            old, rows = slide(old, rows, layout, self._windows[stream])
        return Side(old, make_chunk(rows, layout, self._spec.kernel) if len(rows) else None)

    def _result(self, tuples: Tuples, sides: Sequence[Side]) -> pa.RecordBatch:
        columns = pick(self._spec.output, tuples, sides)
        names = [f"{stream}.{column}" for stream, column in self._spec.output]
        return pa.RecordBatch.from_arrays([pa.array(tuples.latest), *columns], ["_time", *names])

    def _retain(self, sides: Sequence[Side], marks: Sequence[int]) -> None:
        """Keep what may still join rows at or after these watermarks."""
        horizons = [self._spec.network.horizon(i, marks) for i in self._streams]
        for i, (buffer, side) in enumerate(zip(self.buffers, sides, strict=True)):
            if i in self._windows:
                buffer.revise(side.old, partial(self._alive, i, horizons[i], marks))
            buffer.expire(horizons[i])
            if side.new is not None and side.new.last >= horizons[i]:
                alive = self._alive(i, horizons[i], marks, side.new)
                if alive.all():
                    buffer.add(side.new)
                elif alive.any():
                    buffer.add(keep_rows(side.new, alive))
        for i, (buffer, side) in enumerate(zip(self.buffers, sides, strict=True)):
            new_rows = 0 if side.new is None else len(side.new)
            survivors = partial(self._survivors, i, horizons[i], marks)
            buffer.tidy(horizons[i], new_rows, survivors)

    def _alive(self, stream: int, horizon: int, marks: Sequence[int], chunk: Chunk) -> Bools:
        """Rows that can still get a partner from some stream, or that count in a ROWS window."""
        alive: Bools = chunk.times >= horizon
        if chunk.until is not None:
            earliest = min((mark for j, mark in enumerate(marks) if j != stream), default=FOREVER)
            alive &= is_open(chunk.until) | (chunk.until > earliest)
        return alive

    def _survivors(
        self,
        stream: int,
        horizon: int,
        marks: Sequence[int],
        chunk: Chunk,
        held: Sequence[Sequence[Chunk]] | None = None,
    ) -> Bools:
        """Rows that may still be part of a new result, given what streams hold, or the buffers.

        A row is dead when no stream can have a new partner for it, and also when a stream that
        has gone past it holds none of its key in its window. What counts in a ROWS window stays.
        """
        alive = self._alive(stream, horizon, marks, chunk)
        counting = None if chunk.until is None else alive & is_open(chunk.until)
        for j, mark in enumerate(marks):
            passed = alive & (chunk.times < mark - self._rule.bounds[stream][j])
            places = np.flatnonzero(passed)
            if j != stream and len(places):
                theirs = self.buffers[j].chunks() if held is None else held[j]
                alive[places] = self._has_partner(chunk, places, stream, j, theirs)
        return alive if counting is None else alive | counting

    def _has_partner(
        self, chunk: Chunk, places: Int64s, stream: int, other: int, held: Sequence[Chunk]
    ) -> Bools:
        """Whether another stream holds rows that may match the rows in these positions."""
        bounds, times = self._rule.bounds, chunk.times[places]
        key = next(iter(self._rule.links((stream,), (other,))), None)
        probes = Probes(
            NO_HASHES if key is None else chunk.hashes[key][places],
            times - bounds[other][stream],
            times + bounds[stream][other],
        )
        has_partner = np.zeros(len(places), dtype=np.bool_)
        for theirs in held:
            has_partner[theirs.access(key).index.find(probes).probes] = True
        return has_partner
