"""A stage as a batch job: the same operator, fed in the order of time.

Envelopes carry the earliest time of their rows and reach the host in that order, so when one
arrives, no later one can hold anything older: its start is the watermark of all streams, and
memory holds the window, not the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nilometer.kernels.admit import Punctuation
from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import FOREVER
from nilometer.operators.envelope import Header, seal_in_memory, unseal
from nilometer.operators.stage import BucketRun, MicroBatch, Stage
from nilometer.operators.watermarks import NEVER
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.emit import flatten
from nilometer.spark.pack import admit_rows, gather
from nilometer.spark.query import JoinQuery
from nilometer.spark.run_stream import union
from nilometer.spark.ship import ship_function

_PACKED: Final = "bucket INT, start BIGINT, body BINARY"
_ROWS_PER_ENVELOPE: Final = 1 << 13
_ROWS_PER_STEP: Final = 1 << 17


def run_batch(query: JoinQuery, frames: Sequence[DataFrame]) -> DataFrame:
    """The DataFrame of a query's results over inputs that are all there."""
    packed = union(
        [
            query.carried_rows(i, frame).mapInArrow(
                ship_function(PackInOrder(query.stage, i)), _PACKED
            )
            for i, frame in enumerate(frames)
        ]
    )
    ordered = packed.repartition(query.stage.routing.buckets, "bucket").sortWithinPartitions(
        "bucket", "start"
    )
    hosted = ordered.mapInArrow(ship_function(HostInOrder(query.stage)), query.shape.schema)
    return query.shape.finish(hosted)


@dataclass(frozen=True)
class PackInOrder:
    """Rows of one stream in; out come envelopes of rows that are near each other in time."""

    stage: Stage
    stream: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in gather(batches, self.stage.routing.copies(self.stream)):
            yield self._pack(rows)

    def _pack(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        routing, layout = self.stage.routing, self.stage.operator.layouts[self.stream]
        admitted, _ = admit_rows(batch, self.stage, self.stream)
        numbers, starts, contents = [], [], []
        for number, part in zip(
            bucket_numbers(routing.buckets), routing.split(admitted, self.stream), strict=True
        ):
            times = layout.times(part)
            order = np.argsort(times)
            for first in range(0, len(part), _ROWS_PER_ENVELOPE):
                places = order[first : first + _ROWS_PER_ENVELOPE]
                numbers.append(number)
                starts.append(int(times[places[0]]))
                header = Header(self.stream, Punctuation())
                contents.append((header, part.take(pa.array(places))))
        columns = [
            pa.array(numbers, pa.int32()),
            pa.array(starts, pa.int64()),
            seal_in_memory(contents),
        ]
        return pa.RecordBatch.from_arrays(columns, ["bucket", "start", "body"])


@dataclass(frozen=True)
class HostInOrder:
    """Envelopes in the order of bucket and time in, results out."""

    stage: Stage

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        envelopes = (
            (bucket.as_py(), start.as_py(), body.as_buffer())
            for batch in batches
            for bucket, start, body in zip(*batch.columns, strict=True)
        )
        for _, own in groupby(envelopes, key=lambda envelope: envelope[0]):
            bucket = _BucketInOrder(self.stage)
            for _, start, body in own:
                yield from bucket.add(start, body)
            yield from bucket.finish()


@dataclass
class _BucketInOrder:
    """One bucket: envelopes are collected into steps worth the operator's while."""

    stage: Stage
    pending: MicroBatch = field(init=False)
    rows: int = 0

    def __post_init__(self) -> None:
        self._run = BucketRun(self.stage, MemoryStore())
        self._streams = len(self.stage.names)
        self.pending = MicroBatch.empty(self._streams)

    def add(self, start: int, body: pa.Buffer) -> Iterator[pa.RecordBatch]:
        if self.rows >= _ROWS_PER_STEP:
            yield from self._step(start)
        header, parts = unseal(body)
        self.pending.add(header.stream, parts, header.punctuation)
        self.rows += sum(map(len, parts))

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._step(FOREVER)

    def _step(self, start: int) -> Iterator[pa.RecordBatch]:
        """Join what is collected; no envelope to come holds rows before `start`."""
        before, after = [NEVER] * self._streams, self._marks(start)
        batch, self.pending, self.rows = self.pending, MicroBatch.empty(self._streams), 0
        for result in self._run.process_between(batch, before, after):
            yield flatten(result)

    def _marks(self, start: int) -> list[int]:
        """How far all streams have come; rows of static tables come before all others."""
        static = self.stage.operator.static
        return [FOREVER if i in static else start for i in range(self._streams)]
