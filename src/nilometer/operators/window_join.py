"""The W-join as an operator: buffers, what may be dropped from them, snapshot and restore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, keep_rows, make_chunk
from nilometer.kernels.indexes import Probes
from nilometer.kernels.key_hashes import is_exact
from nilometer.kernels.window_join import JoinRule, Residual, Side, Tuples, join_new_rows, pick
from nilometer.model.network import TimeNetwork
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.stream_buffer import StreamBuffer


@dataclass(frozen=True)
class WindowJoinSpec:
    """A W-join, before it runs: which streams, under which windows, on which key and predicates."""

    network: TimeNetwork
    schemas: tuple[pa.Schema, ...]
    layouts: tuple[RowLayout, ...]
    output: tuple[tuple[int, int], ...]
    """(stream, column) of each column of a result; its time comes first."""
    kernel: Kernel = Kernel.HASH
    residuals: tuple[Residual, ...] = ()

    @property
    def rule(self) -> JoinRule:
        keys = tuple(layout.keys for layout in self.layouts)
        types = [self.schemas[0].field(k).type for k in keys[0]]
        return JoinRule(self.network.closed, keys, not keys[0] or is_exact(types), self.residuals)

    def start(self, store: ChunkStore) -> WindowJoin:
        """The running operator, with empty buffers."""
        return WindowJoin(self, store)


@dataclass
class JoinCounters:
    """What a running join has seen, per stream, since it first started."""

    late: list[int]

    def to_json(self) -> dict[str, Any]:
        return {"late": list(self.late)}


class WindowJoin:
    """A running W-join: results of rows as they come, once each; `_time` is their latest time."""

    def __init__(self, spec: WindowJoinSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._rule = spec.rule
        self.buffers = tuple(
            StreamBuffer(i, layout, spec.kernel, store) for i, layout in enumerate(spec.layouts)
        )
        self.counters = JoinCounters([0] * len(spec.layouts))

    def process(
        self, rows: Sequence[pa.RecordBatch], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The results of a micro-batch, given the watermarks before and after it.

        Rows strictly earlier than their stream's watermark before the micro-batch are late:
        dropped and counted. The buffers are brought up to date once the results are consumed.
        """
        new = [self._accept(i, batch, before[i]) for i, batch in enumerate(rows)]
        sides = [Side(b.chunks(), chunk) for b, chunk in zip(self.buffers, new, strict=True)]
        for tuples in join_new_rows(sides, self._rule):
            yield self._result(tuples, sides)
        self._retain(new, after)

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Put rows into a buffer that were there before the query started."""
        if len(rows):
            chunk = make_chunk(rows, self._spec.layouts[stream], self._spec.kernel)
            self.buffers[stream].add(chunk)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "buffers": [[ref.to_json() for ref in buffer.refs] for buffer in self.buffers],
            "counters": self.counters.to_json(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for buffer, refs in zip(self.buffers, snapshot["buffers"], strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)
        self.counters = JoinCounters(**snapshot["counters"])

    def _accept(self, stream: int, rows: pa.RecordBatch, watermark: int) -> Chunk | None:
        layout = self._spec.layouts[stream]
        times = layout.times(rows)
        if len(times) and times.min() < watermark:
            in_time = times >= watermark
            self.counters.late[stream] += int(len(times) - np.count_nonzero(in_time))
            rows = rows.take(pa.array(np.flatnonzero(in_time)))
        return make_chunk(rows, layout, self._spec.kernel) if len(rows) else None

    def _result(self, tuples: Tuples, sides: Sequence[Side]) -> pa.RecordBatch:
        columns = pick(self._spec.output, tuples, sides)
        names = [f"{stream}.{column}" for stream, column in self._spec.output]
        return pa.RecordBatch.from_arrays([pa.array(tuples.latest), *columns], ["_time", *names])

    def _retain(self, new: Sequence[Chunk | None], watermarks: Sequence[int]) -> None:
        horizons = [self._spec.network.horizon(i, watermarks) for i in range(len(new))]
        for buffer, chunk, horizon in zip(self.buffers, new, horizons, strict=True):
            buffer.expire(horizon)
            if chunk is not None and chunk.last >= horizon:
                alive = chunk.times >= horizon
                buffer.add(chunk if alive.all() else keep_rows(chunk, alive))
        for i, (buffer, chunk) in enumerate(zip(self.buffers, new, strict=True)):
            buffer.tidy(
                horizons[i],
                0 if chunk is None else len(chunk),
                lambda c, i=i: self._survivors(i, c, horizons[i], watermarks),  # type: ignore[misc]
            )

    def _survivors(
        self, stream: int, chunk: Chunk, horizon: int, watermarks: Sequence[int]
    ) -> Bools:
        """Rows that may still be part of a new result.

        A row is dead when no stream can bring it a new partner, and also when a stream that
        has gone past it holds none of its key in its window.
        """
        kept: Bools = chunk.times >= horizon
        bounds = self._rule.bounds
        for j, watermark in enumerate(watermarks):
            passed = kept & (chunk.times < watermark - bounds[stream][j])
            places = np.flatnonzero(passed) if j != stream else ()
            if len(places):
                times = chunk.times[places]
                probes = Probes(
                    chunk.hashes[places],
                    times - bounds[j][stream],
                    times + bounds[stream][j],
                )
                kept[places] = False
                for other in self.buffers[j].chunks():
                    kept[places[other.index.find(probes).probes]] = True
        return kept
