"""Reads rows from the log of a query's results, starting at an offset."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.log.layout import TIME
from nilometer.log.reader import LogReader
from nilometer.log.seen import Seen
from nilometer.server.results.chunk import Page
from nilometer.server.results.offset import Offset

MOST_BYTES: Final = 16 << 20
"""A page ends after this many bytes, however few rows it has."""


def read_page(reader: LogReader, offset: Offset, max_rows: int, seen: Seen) -> Page:
    """At most `max_rows` rows after an offset, up to the end in `seen`; fewer if they are large.

    The same arguments always give the same page. Raises LogGapError if rows were deleted.
    """
    place, sent_before = offset.position, offset.sent_before
    left, room, watermark = max_rows + offset.taken, MOST_BYTES, None
    batches: list[pa.RecordBatch] = []
    while left > 0 and room > 0 and place < seen.end:
        stop = min(reader.limit(place, left), seen.end)
        for frame in reader.read(place, stop):
            rows = frame.rows if sent_before is None else _from(frame.rows, sent_before)
            batches.append(rows)
            left -= len(rows)
            room -= rows.nbytes
            watermark = frame.watermark
            if sent_before is not None and watermark is not None and watermark >= sent_before:
                sent_before = None  # no later row is older
            if room <= 0:
                stop = frame.end
                break
        place = stop if stop > place else seen.end  # without frames, segments begin
    table = pa.Table.from_batches(batches, schema=reader.layout.stored)
    at_end = place >= seen.end
    return Page(
        table.slice(offset.taken),
        offset,
        Offset.at(reader.log_id, place, sent_before, max(0, offset.taken - table.num_rows)),
        seen.watermark if at_end else watermark,
        at_end,
    )


def _from(rows: pa.RecordBatch, instant: int) -> pa.RecordBatch:
    """The rows with times not before an instant."""
    column = rows.column(TIME)
    return rows.filter(pc.greater_equal(column, pa.scalar(instant, column.type)))
