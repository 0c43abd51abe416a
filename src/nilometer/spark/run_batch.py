"""Runs stages as a batch job: the same operators, fed in time order.

Envelopes carry the earliest time of their rows and reach the host in that order, so when one
arrives, no later one can hold anything older: its start is the watermark of all streams, and
memory holds the window, not the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from nilometer.kernels.admit import Punctuation
from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.envelope import Header, unseal
from nilometer.operators.program import Program
from nilometer.operators.stage import BucketRun, MicroBatch, Stage
from nilometer.operators.watermarks import NEVER
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.carried import carried_rows
from nilometer.spark.emit import flatten
from nilometer.spark.exchange import Exchange
from nilometer.spark.left_out import LeftOut
from nilometer.spark.pack import PACKED, Pulse, admit_selected, gather
from nilometer.spark.query import SparkQuery
from nilometer.spark.ship import ship_function
from nilometer.spark.stage_inputs import union
from nilometer.sql.physical.join_places import time_place
from nilometer.sql.physical.stages import StreamInput

_IN_MEMORY: Final = Exchange("batch", by_ticket=False)
_PACKED: Final = StructType([PACKED["bucket"], StructField("start", LongType()), PACKED["body"]])
_ROWS_PER_ENVELOPE: Final = 1 << 13
_ROWS_PER_STEP: Final = 1 << 17


def run_batch(query: SparkQuery, frames: Mapping[str, DataFrame], left_out: LeftOut) -> DataFrame:
    """The DataFrame of a query's results over complete inputs."""
    session = next(iter(frames.values())).sparkSession
    sent: dict[int, list[DataFrame]] = {}
    for number, planned in enumerate(query.stages):
        stage = planned.stage
        coming = [
            _pack(given, stream, stage, frames, left_out)
            for stream, given in enumerate(planned.inputs)
            if isinstance(given, StreamInput)
        ]
        coming += sent.get(number, ())
        if _speaks_alone(stage):
            pulse = session.range(1).mapInArrow(ship_function(Pulse(stage, _IN_MEMORY)), PACKED)
            coming.append(pulse.selectExpr("bucket", f"{EARLIEST}L AS start", "body"))
        packed = union(coming)
        ordered = packed.repartition(stage.routing.buckets, "bucket").sortWithinPartitions(
            "bucket", "start"
        )
        if planned.to_stage is not None:
            target = PackInOrder(query.stages[planned.to_stage].stage, planned.to_stream)
            on = ordered.mapInArrow(ship_function(HostInOrder(stage, target)), _PACKED)
            sent.setdefault(planned.to_stage, []).append(on)
    hosted = ordered.mapInArrow(ship_function(HostInOrder(stage)), query.shape.schema)
    return query.shape.finish(hosted)


def _pack(
    given: StreamInput,
    stream: int,
    stage: Stage,
    frames: Mapping[str, DataFrame],
    left_out: LeftOut,
) -> DataFrame:
    source = given.plan.sources[given.source]
    frame, time = frames[source.relation.name], source.relation.time
    if source.expansions and time is not None:  # rows are counted before they are multiplied
        frame = left_out.watch(source.relation.name, frame, time)
    rows = carried_rows(given.plan, given.source, frame)
    if not source.expansions and time is not None:
        names = rows.columns
        ends = [i for i, one in enumerate(source.carried) if one.ref == source.until]
        end = names[ends[0]] if ends else None
        rows = left_out.watch(source.relation.name, rows, names[time_place(source)], end)
    return rows.mapInArrow(ship_function(PackInOrder(stage, stream)), _PACKED)


def _speaks_alone(stage: Stage) -> bool:
    """Whether a stage has output even without input."""
    operator = stage.operator
    return isinstance(operator, Program) and operator.speaks_alone


@dataclass(frozen=True)
class PackInOrder:
    """Packs rows of one stream into envelopes of rows that are close in time."""

    stage: Stage
    stream: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in gather(batches, self.stage.routing.copies(self.stream)):
            yield self.pack(admit_selected(rows, self.stage, self.stream)[0])

    def pack(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Envelopes of rows that the stage has admitted, or that another has sent."""
        routing, layout = self.stage.routing, self.stage.operator.layouts[self.stream]
        header = Header(self.stream, Punctuation())
        numbers, starts, contents = [], [], []
        for number, part in zip(
            bucket_numbers(routing.buckets), routing.split(rows, self.stream), strict=True
        ):
            times = layout.times(part)
            order = np.argsort(times)
            for first in range(0, len(part), _ROWS_PER_ENVELOPE):
                places = order[first : first + _ROWS_PER_ENVELOPE]
                numbers.append(number)
                starts.append(int(times[places[0]]))
                contents.append((header, part.take(pa.array(places))))
        columns = [
            pa.array(numbers, pa.int32()),
            pa.array(starts, pa.int64()),
            _IN_MEMORY.send(contents),
        ]
        return pa.RecordBatch.from_arrays(columns, _PACKED.names)


@dataclass(frozen=True)
class HostInOrder:
    """Processes envelopes ordered by bucket and time; packs the results if there is a target."""

    stage: Stage
    target: PackInOrder | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        envelopes = (
            (bucket.as_py(), start.as_py(), body.as_buffer())
            for batch in batches
            for bucket, start, body in zip(*batch.columns, strict=True)
        )
        for _, own in groupby(envelopes, key=lambda envelope: envelope[0]):
            bucket = _BucketInOrder(self.stage)
            finish = flatten if self.target is None else self.target.pack
            for _, start, body in own:
                yield from map(finish, bucket.add(start, body))
            yield from map(finish, bucket.finish())


@dataclass
class _BucketInOrder:
    """One bucket: collects envelopes into steps large enough to be efficient."""

    stage: Stage
    pending: MicroBatch = field(init=False)
    rows: int = 0

    def __post_init__(self) -> None:
        self._run = BucketRun(self.stage, MemoryStore())
        self._streams = len(self.stage.names)
        self.pending = MicroBatch.empty(self._streams)

    def add(self, start: int, body: pa.Buffer) -> Iterator[pa.RecordBatch]:
        if self.rows >= _ROWS_PER_STEP and start > EARLIEST:  # static tables arrive as a whole
            yield from self._step(start)
        header, parts = unseal(body)
        self.pending.add(header.stream, parts, header.punctuation)
        self.rows += sum(map(len, parts))

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._step(FOREVER)

    def _step(self, start: int) -> Iterator[pa.RecordBatch]:
        """Join what is collected; no later envelope holds rows before `start`."""
        before, after = [NEVER] * self._streams, self._marks(start)
        batch, self.pending, self.rows = self.pending, MicroBatch.empty(self._streams), 0
        yield from self._run.process_between(batch, before, after)

    def _marks(self, start: int) -> list[int]:
        """The watermarks of all streams; rows of static tables come before all others."""
        static = self.stage.operator.static
        return [FOREVER if i in static else start for i in range(self._streams)]
