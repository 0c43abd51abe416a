"""Packs input: a map task turns its rows of one stream into one envelope per bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from nilometer.kernels.admit import Punctuation, largest_time
from nilometer.kernels.arrays import as_int64
from nilometer.kernels.row_errors import RowErrors
from nilometer.operators.envelope import Header, headers
from nilometer.operators.stage import Stage, admit_rows, concat
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.exchange import Exchange
from nilometer.spark.uncomputable import leave_out_failed

PACKED: Final = StructType(
    [StructField("bucket", IntegerType()), StructField("body", BinaryType())]
)
SELECTED: Final = "_nilometer_selected"
NOW: Final = "_nilometer_now"
WATERMARK: Final = "_nilometer_watermark"

_MOST_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class Pack:
    """Packs rows of one stream into envelopes; extra columns hold the selection and the time.

    A row with a watermark is not part of the stream: it tells how far the stream's log is.
    """

    stage: Stage
    stream: int
    exchange: Exchange
    texts: tuple[str, ...] = ()
    """The texts of what Spark computes, by the numbers with which it marks failures."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in gather(batches, self.stage.routing.copies(self.stream)):
            own, watermark = _without_watermarks(rows)
            errors = RowErrors()
            own = leave_out_failed(own, self.texts, errors, self.stage.names[self.stream])
            yield self.pack(own, _beside(own, SELECTED), _now(rows), watermark, errors)

    def pack(
        self,
        batch: pa.RecordBatch,
        selected: pa.Array | None,
        now: int | None = None,
        watermark: int | None = None,
        errors: RowErrors | None = None,
    ) -> pa.RecordBatch:
        """Envelopes for all buckets, including those that get no rows."""
        admitted, punctuation = admit_rows(batch, self.stage, self.stream, selected)
        header = Header(self.stream, replace(punctuation, watermark=watermark), now)
        return envelopes_of(self.stage, self.exchange, admitted, header, errors or RowErrors())


@dataclass(frozen=True)
class Pulse:
    """Emits empty envelopes for rows of any kind; they may carry the time."""

    stage: Stage
    exchange: Exchange

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = [batch for batch in batches if len(batch)]
        if some:
            header = Header(0, Punctuation(), _now(some[0]))
            yield empty_envelopes(self.stage, self.exchange, header)


@dataclass(frozen=True)
class Stamp:
    """Passes envelopes on, followed by empty ones that carry the time."""

    stage: Stage
    exchange: Exchange

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                yield batch.select(["bucket", "body"])
                header = Header(0, Punctuation(), _now(batch))
                yield empty_envelopes(self.stage, self.exchange, header)


@dataclass(frozen=True)
class Overhear:
    """Emits empty envelopes with the largest time of rows that other stages read."""

    stage: Stage
    stream: int
    exchange: Exchange

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                punctuation = Punctuation(largest_time(batch.column(0)))
                header = Header(self.stream, punctuation, _now(batch))
                yield empty_envelopes(self.stage, self.exchange, header)


def envelopes_of(
    stage: Stage, exchange: Exchange, rows: pa.RecordBatch, header: Header, errors: RowErrors
) -> pa.RecordBatch:
    """Envelopes of a stream's rows for all buckets of a stage, including those that get none."""
    parts = stage.routing.split(rows, header.stream)
    part_headers = headers(header, errors, len(parts))
    return _sent(stage, exchange, list(zip(part_headers, parts, strict=True)))


def empty_envelopes(stage: Stage, exchange: Exchange, header: Header) -> pa.RecordBatch:
    """Envelopes without rows for all buckets."""
    empty = pa.RecordBatch.from_pylist([], stage.operator.schemas[0])
    return _sent(stage, exchange, [(header, empty)] * stage.routing.buckets)


def _sent(
    stage: Stage, exchange: Exchange, contents: Sequence[tuple[Header, pa.RecordBatch]]
) -> pa.RecordBatch:
    numbers = pa.array(bucket_numbers(stage.routing.buckets), pa.int32())
    return pa.RecordBatch.from_arrays([numbers, exchange.send(contents)], PACKED.names)


def _without_watermarks(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, int | None]:
    """The rows of a stream, and the largest watermark among them."""
    watermarks = _beside(rows, WATERMARK)
    if watermarks is None or watermarks.null_count == len(watermarks):
        return rows, None
    return rows.filter(pc.is_null(watermarks)), pc.max(watermarks).as_py()


def _now(batch: pa.RecordBatch) -> int | None:
    clock = _beside(batch, NOW)
    return None if clock is None else int(as_int64(clock)[0])


def gather(batches: Iterator[pa.RecordBatch], copies: int) -> Iterator[pa.RecordBatch]:
    """The same rows in few large batches, however small Spark makes them.

    Every row will be sent in this many copies, which bounds the size of a batch.
    """
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if len(batch) == 0:
            continue
        pending.append(batch)
        size += batch.nbytes
        if size * copies >= _MOST_BYTES:
            yield concat(pending, batch.schema)
            pending, size = [], 0
    if pending:
        yield concat(pending, pending[0].schema)


def admit_selected(
    batch: pa.RecordBatch, stage: Stage, stream: int
) -> tuple[pa.RecordBatch, Punctuation]:
    """The relevant rows of a stream, in the stage's form; a column says what is selected."""
    return admit_rows(batch, stage, stream, _beside(batch, SELECTED))


def _beside(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column sent beside those of the stream, if there is one."""
    return batch.column(name) if name in batch.schema.names else None
