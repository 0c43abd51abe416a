"""A stage: an operator, how its inputs are routed to buckets, and how far their clocks have come.

Spark's host and the local runner both run a stage, bucket by bucket, with the class below;
neither knows what the operator does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa

from nilometer.kernels.admit import Punctuation
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.gather import join_batches
from nilometer.kernels.routing import Routing
from nilometer.kernels.row_errors import RowErrors
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.change_operator import StoredChunks
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.content import Content, content_of
from nilometer.operators.envelope import Header
from nilometer.operators.key_counts import KeyWatch, Look, RoutingKey
from nilometer.operators.share import StreamShare, take_over
from nilometer.operators.watermarks import NEVER, StreamClock, Watermarks


class Execution(StrEnum):
    """When operators of a windowed plan learn that time has passed (Nile section 3).

    ITA   when a row reaches them: the answer is correct, but may be late.
    TPA   when the clocks of their inputs advance; rows travel with the periods in which they hold.
    NTA   the same, but rows travel when added, and again, negative, when retracted.
    """

    ITA = "ita"
    TPA = "tpa"
    NTA = "nta"


class RunningOperator(Protocol):
    """What runs in one bucket."""

    @property
    def late(self) -> Sequence[int]: ...
    @property
    def rows_held(self) -> list[int]: ...
    @property
    def stored(self) -> Sequence[StoredChunks]: ...
    def hold(self, stream: int, rows: pa.RecordBatch) -> None: ...
    def process(
        self, rows: Sequence[pa.RecordBatch], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, snapshot: dict[str, Any]) -> None: ...


class OperatorSpec(Protocol):
    """The spec of an operator: a window join, or the program of a windowed plan."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def static(self) -> frozenset[int]: ...
    @property
    def schemas(self) -> tuple[pa.Schema, ...]: ...
    @property
    def layouts(self) -> tuple[RowLayout, ...]: ...
    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]: ...
    def start(self, store: ChunkStore) -> RunningOperator: ...


@dataclass(frozen=True)
class Stage:
    """What runs in every bucket, and which rows come to which."""

    operator: OperatorSpec
    clocks: tuple[StreamClock, ...]
    routing: Routing
    execution: Execution = Execution.TPA
    overheard: tuple[StreamClock, ...] = ()
    """Streams of other stages whose times arrive here: idle streams follow all active ones."""
    keys: tuple[RoutingKey, ...] = ()
    """The keys by which rows are routed, to tell which of their values are frequent."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.operator.names

    def no_rows(self, now: int | None = None) -> MicroBatch:
        """An empty micro-batch, to which rows can be added."""
        return MicroBatch.empty(len(self.clocks) + len(self.overheard), now)

    @property
    def needs_now(self) -> bool:
        """Whether it needs the times of micro-batches."""
        return any(clock.needs_now for clock in (*self.clocks, *self.overheard))


@dataclass
class MicroBatch:
    """The input of one bucket: rows of each stream, and the time information of all rows."""

    rows: list[list[pa.RecordBatch]]
    punctuation: list[Punctuation]
    now: int | None = None
    frontiers: dict[tuple[int, int], int] = field(default_factory=dict)
    """The instants before which senders of other stages are done, by stream and sender."""
    errors: RowErrors = field(default_factory=RowErrors)
    """Rows that were left out."""

    @classmethod
    def empty(cls, streams: int, now: int | None = None) -> MicroBatch:
        return cls([[] for _ in range(streams)], [Punctuation()] * streams, now)

    def add(self, stream: int, parts: Sequence[pa.RecordBatch], punctuation: Punctuation) -> None:
        self.rows[stream].extend(rows for rows in parts if len(rows))
        self.punctuation[stream] += punctuation

    def open(self, header: Header, parts: Sequence[pa.RecordBatch]) -> None:
        """Add the content of an envelope."""
        self.add(header.stream, parts, header.punctuation)
        if header.now is not None:
            self.now = max(header.now, self.now or header.now)
        if header.frontier is not None:
            self.frontiers[header.stream, header.sender] = header.frontier
        self.errors.add(RowErrors.from_json(header.errors))


@dataclass
class Traffic:
    """Rows received and emitted in the last micro-batch, and rows dropped so far."""

    rows_in: list[int]
    rows_out: int = 0
    without_time: list[int] = field(default_factory=list)
    shed: list[int] = field(default_factory=list)
    """Rows of each stream that were not read, as too many waited."""
    look: Look = field(default_factory=Look)
    """The rows that reached this bucket in the last micro-batch, and their keys."""


class BucketRun:
    """One bucket of a running stage."""

    def __init__(self, stage: Stage, store: ChunkStore) -> None:
        streams = len(stage.names)
        self._stage = stage
        self.watermarks = Watermarks((*stage.clocks, *stage.overheard))
        self.operator = stage.operator.start(store)
        self.traffic = Traffic([0] * streams, 0, [0] * streams, [0] * streams)
        self._watch = KeyWatch(stage.keys)
        self._reached = NEVER
        """The latest row that has reached the operator."""

    @property
    def frontier(self) -> int:
        """The instant before which everything is known and emitted.

        No event is older than what has always held, and that is known from the start.
        """
        marks = self._known()
        for clock, mark in zip(self._stage.clocks, marks, strict=True):
            if clock.senders and mark == NEVER:
                return NEVER
        return max(min(marks), EARLIEST + 1)

    def process(self, batch: MicroBatch) -> Iterator[pa.RecordBatch]:
        """The results of a micro-batch; the state is up to date once all are consumed."""
        before = self._own_marks
        self.watermarks.advance(
            [p.largest for p in batch.punctuation],
            batch.now,
            batch.frontiers,
            [p.watermark for p in batch.punctuation],
        )
        own = batch.punctuation[: len(before)]
        largest_kept = [p.largest_kept for p in own if p.largest_kept is not None]
        self._reached = max(self._reached, *largest_kept, NEVER)
        return self.process_between(batch, before, self._known())

    @property
    def _own_marks(self) -> list[int]:
        return self.watermarks.marks[: len(self._stage.clocks)]

    def _known(self) -> list[int]:
        """The watermarks that are reported to the operator."""
        marks = self._own_marks
        if self._stage.execution is not Execution.ITA or min(marks) >= FOREVER:
            return marks
        return [min(mark, self._reached) for mark in marks]

    def process_between(
        self, batch: MicroBatch, before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The same, with watermarks that the caller knows."""
        self.traffic.rows_out = 0
        for i, punctuation in enumerate(batch.punctuation[: len(before)]):
            self.traffic.rows_in[i] = punctuation.rows
            self.traffic.without_time[i] += punctuation.without_time
        schemas = self._stage.operator.schemas
        rows = [concat(parts, s) for parts, s in zip(batch.rows, schemas, strict=False)]
        self.traffic.look = self._watch.look(rows)
        for result in self.operator.process(rows, before, after):
            self.traffic.rows_out += len(result)
            yield result

    def take_over(self, old: Sequence[BucketRun], bucket: int) -> None:
        """Take over, without any state yet, what belongs to this bucket of others' states.

        Where rows are routed as they were, the store has the chunks of that bucket already.
        Raises InputError if the number of buckets cannot be changed so.
        """
        before, after = old[0]._stage.routing, self._stage.routing
        if before == after:
            self.operator.restore(old[bucket].operator.snapshot())
        else:
            streams = range(len(self._stage.names))
            shares = [StreamShare(before, after, bucket, stream) for stream in streams]
            take_over(self.operator, [one.operator for one in old], shares)
        self.watermarks.take_over([one.watermarks for one in old])
        counted = zip(*(one.traffic.without_time for one in old), strict=True)
        self.traffic.without_time = [max(rows) for rows in counted]
        self._reached = min(one._reached for one in old)

    def content(self) -> Content:
        """What its state says: equal ones give the same from then on.

        Rows that were dropped do not count, as they are only counted.
        """
        marks = self.watermarks.snapshot()
        reached = self._reached if self._stage.execution is Execution.ITA else None
        return json.dumps(marks), reached, content_of(self.operator, self._known())

    def state(self) -> dict[str, Any]:
        """Everything but the chunks in the store, fit for JSON."""
        return {
            "watermarks": self.watermarks.snapshot(),
            "operator": self.operator.snapshot(),
            "without_time": list(self.traffic.without_time),
            "shed": list(self.traffic.shed),
            "reached": self._reached,
        }

    def snapshot(self) -> bytes:
        """The same as JSON."""
        return json.dumps(self.state(), separators=(",", ":")).encode()

    def restore(self, snapshot: bytes) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self.take_state(json.loads(snapshot))

    def take_state(self, state: dict[str, Any]) -> None:
        """Continue from a state, with the same store."""
        self.watermarks.restore(state["watermarks"])
        self.operator.restore(state["operator"])
        self.traffic.without_time = state["without_time"]
        self.traffic.shed = state.get("shed", self.traffic.shed)  # which earlier ones lack
        self._reached = state["reached"]


def concat(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """One record batch of all parts, of which there may be none."""
    if parts:
        return join_batches(parts)
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def admit_rows(
    batch: pa.RecordBatch, stage: Stage, stream: int, selected: pa.Array | None
) -> tuple[pa.RecordBatch, Punctuation]:
    """The relevant rows of a stream, in the form that the stage needs."""
    schema = stage.operator.schemas[stream]
    columns = [
        cast_values(column, field.type)
        for column, field in zip(batch.columns, schema, strict=False)
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    return stage.operator.admit(stream, rows, selected)
