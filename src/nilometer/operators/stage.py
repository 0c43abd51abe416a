"""A stage: an operator, how its inputs are routed to buckets, and how far their clocks have come.

Spark's host and the local runner both run a stage, bucket by bucket, with the class below;
neither knows what the operator does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from nilometer.kernels.admit import Punctuation
from nilometer.kernels.routing import Routing
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.watermarks import StreamClock, Watermarks
from nilometer.operators.window_join import WindowJoinSpec


@dataclass(frozen=True)
class Stage:
    """What runs in every bucket, and which rows come to which."""

    operator: WindowJoinSpec
    clocks: tuple[StreamClock, ...]
    routing: Routing

    @property
    def names(self) -> tuple[str, ...]:
        return self.operator.network.streams


@dataclass
class MicroBatch:
    """What arrives in one bucket at once: rows of each stream, and what all of its rows say."""

    rows: list[list[pa.RecordBatch]]
    punctuation: list[Punctuation]
    now: int | None = None

    @classmethod
    def empty(cls, streams: int) -> MicroBatch:
        return cls([[] for _ in range(streams)], [Punctuation()] * streams)

    def add(self, stream: int, parts: Sequence[pa.RecordBatch], punctuation: Punctuation) -> None:
        self.rows[stream].extend(rows for rows in parts if len(rows))
        self.punctuation[stream] += punctuation


@dataclass
class Traffic:
    """Rows that came in and went out in the last micro-batch, and those ever dropped."""

    rows_in: list[int]
    rows_out: int = 0
    without_time: list[int] = field(default_factory=list)


class BucketRun:
    """One bucket of a running stage."""

    def __init__(self, stage: Stage, store: ChunkStore) -> None:
        streams = len(stage.names)
        self._stage = stage
        self.watermarks = Watermarks(stage.clocks)
        self.operator = stage.operator.start(store)
        self.traffic = Traffic([0] * streams, 0, [0] * streams)

    def process(self, batch: MicroBatch) -> Iterator[pa.RecordBatch]:
        """The results of a micro-batch; the state is up to date once all are consumed."""
        before = list(self.watermarks.marks)
        self.watermarks.advance([p.largest for p in batch.punctuation], batch.now)
        return self.process_between(batch, before, self.watermarks.marks)

    def process_between(
        self, batch: MicroBatch, before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The same, where somebody else knows the watermarks."""
        self.traffic.rows_out = 0
        for i, punctuation in enumerate(batch.punctuation):
            self.traffic.rows_in[i] = punctuation.rows
            self.traffic.without_time[i] += punctuation.without_time
        schemas = self._stage.operator.schemas
        rows = [concat(parts, s) for parts, s in zip(batch.rows, schemas, strict=True)]
        for result in self.operator.process(rows, before, after):
            self.traffic.rows_out += len(result)
            yield result

    def snapshot(self) -> bytes:
        """Everything but the chunks in the store."""
        state = {
            "watermarks": self.watermarks.snapshot(),
            "operator": self.operator.snapshot(),
            "without_time": self.traffic.without_time,
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def restore(self, snapshot: bytes) -> None:
        """Continue where a snapshot was taken, with the same store."""
        state: dict[str, Any] = json.loads(snapshot)
        self.watermarks.restore(state["watermarks"])
        self.operator.restore(state["operator"])
        self.traffic.without_time = state["without_time"]


def concat(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """One record batch of all parts."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    return pa.concat_batches(parts)
