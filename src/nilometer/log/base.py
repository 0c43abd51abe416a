"""Bases: the combined answer of the oldest changes of a changelog, which it replaces.

The changes before an offset are added up. Those with times before the watermark W there are
final: they become one row for each row that holds, at the instant W - 1 µs, with its copies. The
others stay as they are. So applying the base and then the changes after it gives the answer at
every instant from W - 1 µs on.

A base takes the number of the last segment that it replaces, at offsets where that segment had
nothing: an offset in deleted data is never mistaken for one in the base. Its rows have the
numbers before that of the first change after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import LogError
from nilometer.log.frame_format import (
    ALIGNMENT,
    ALWAYS,
    NEVER,
    Flag,
    FrameHeader,
    no_rows,
    padded,
    time_range,
)
from nilometer.log.layout import DIFF, TIME, TIMESTAMP
from nilometer.log.pack_segments import GivenFrame, GivenSegment, stored_segments
from nilometer.log.packed_format import Int64s
from nilometer.log.parts import pieces
from nilometer.log.retention import Segment
from nilometer.log.segment_files import SegmentFile, base_name
from nilometer.log.segment_format import SegmentHeader
from nilometer.log.segment_reader import open_first
from nilometer.log.storage import Storage

Net: TypeAlias = Callable[[pa.Table, Int64s], tuple[pa.Table, Int64s]]
"""Adds up copies of equal rows; see `nilometer.kernels.net_changes`."""
_AT_ONCE: Final = 1 << 16
_MOST_BYTES: Final = 256 << 20
"""The largest answer (bytes) that is made in memory."""


@dataclass(frozen=True)
class MadeBase:
    """A base ready to be written."""

    segment: GivenSegment
    described: Segment


def make_base(
    storage: Storage,
    segments: Sequence[Segment],
    following: Segment,
    net: Net,
    breathe: Callable[[], None],
) -> MadeBase | None:
    """The base that replaces these segments; None: no instant is final in them yet.

    Raises LogError if they are not a changelog that can be added up.
    """
    after = _header_of(storage, following)
    if after.watermark == NEVER:
        return None
    rows = _answer(storage, segments, after.watermark, net, breathe)
    last = segments[-1]
    begin = padded(last.length) + ALIGNMENT
    first_row = after.first_row - rows.num_rows
    header = replace(
        after, number=last.last, first_row=first_row, watermark=NEVER, created=following.created
    )
    frames = list(_frames(rows, first_row, after.watermark))
    size = begin + sum(one.header.length for one in frames)
    described = replace(
        last,
        number=last.last,
        first_row=first_row,
        created=following.created,
        keys=after.keys,
        length=size,
        name=base_name(last.last, storage.term),
        generation=0,
    )
    return MadeBase(GivenSegment(header, begin, size, frames), described)


def _header_of(storage: Storage, one: Segment) -> SegmentHeader:
    file = SegmentFile(one.name, one.size, one.number, one.last, one.generation)
    with open_first(storage, file) as opened:
        return opened.good_header()[0]


def _answer(
    storage: Storage,
    segments: Sequence[Segment],
    watermark: int,
    net: Net,
    breathe: Callable[[], None],
) -> pa.Table:
    """The rows of the base: the sum of what is final, then the other changes."""
    schema = segments[-1].schema
    answer = _NetRows(schema, net)
    ahead: list[pa.RecordBatch] = []
    for segment in stored_segments(storage, segments):
        for frame in segment.frames:
            is_final = pc.less(frame.rows.column(TIME), pa.scalar(watermark, TIMESTAMP))
            answer.add(frame.rows.filter(is_final))
            if pc.any(pc.invert(is_final)).as_py():
                ahead.append(frame.rows.filter(pc.invert(is_final)))
            breathe()
    final = answer.rows_at(watermark - 1)
    return pa.concat_tables([final, pa.Table.from_batches(ahead, schema)])


class _NetRows:
    """The rows that hold, and their copies."""

    def __init__(self, schema: pa.Schema, net: Net) -> None:
        self._schema = schema
        self._net = net
        names = [name for name in schema.names if name not in (TIME, DIFF)]
        self._rows = pa.schema([schema.field(name) for name in names]).empty_table()
        self._copies: Int64s = np.zeros(0, np.int64)
        self._waiting: list[pa.RecordBatch] = []

    def add(self, changes: pa.RecordBatch) -> None:
        if len(changes):
            self._waiting.append(changes)
        if sum(map(len, self._waiting)) > max(_AT_ONCE, self._rows.num_rows):
            self._add_up()

    def _add_up(self) -> None:
        table = pa.Table.from_batches(self._waiting, self._schema)
        rows = pa.concat_tables([self._rows, table.select(self._rows.column_names)])
        copies = np.concatenate([self._copies, table.column(DIFF).to_numpy()])
        self._rows, self._copies = self._net(rows, copies)
        self._waiting = []
        if self._rows.nbytes > _MOST_BYTES:
            raise LogError(
                "the answer of this changelog is too large for a base",
                detail=f"more than {_MOST_BYTES >> 20} MB",
            )

    def rows_at(self, instant: int) -> pa.Table:
        """All rows that hold as changes of one instant."""
        self._add_up()
        if (self._copies < 0).any():
            raise LogError(
                "the changelog retracts a row that it never emitted",
                detail="part of it is missing or duplicated",
            )
        count = len(self._copies)
        times = pa.array(np.full(count, instant, np.int64)).view(TIMESTAMP)
        own = {
            TIME: times,
            DIFF: pa.array(self._copies).cast(self._schema.field(DIFF).type),
        }
        columns = [
            own[name] if name in own else self._rows.column(name) for name in self._schema.names
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)


def _frames(rows: pa.Table, first_row: int, watermark: int) -> Iterator[GivenFrame]:
    """The rows in at least one frame; the last one has the watermark."""
    whole = rows.combine_chunks().to_batches()
    batches = [one for batch in whole for one in pieces(batch)]
    for number, batch in enumerate(batches or [no_rows(rows.schema)], 1):
        after = watermark if number >= len(batches) else NEVER
        times = time_range(batch, TIME) if len(batch) else (ALWAYS, NEVER)
        header = FrameHeader(
            0, Flag(0), 0, 0, ALIGNMENT, len(batch), first_row, *times, NEVER, after
        )
        first_row += len(batch)
        yield GivenFrame(header, batch, b"")
