"""Reads a log, in any process, while another one writes it; never locks anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa

from nilometer.errors import LogError, LogGapError
from nilometer.log.frame import Frame
from nilometer.log.frame_format import FrameHeader, decode_rows
from nilometer.log.layout import LogLayout
from nilometer.log.location import storage_at
from nilometer.log.position import Position
from nilometer.log.published import as_watermark, read_head, read_layout, segment_sizes
from nilometer.log.segment_reader import SegmentReader, open_segment
from nilometer.log.static_rows import read_static_rows
from nilometer.log.storage import Storage

_ANY_TIME: Final = (None, None)
_LARGE: Final = 1 << 16


class LogReader:
    """A log to be read."""

    def __init__(self, storage: Storage, layout: LogLayout, log_id: str) -> None:
        self._storage = storage
        self.layout = layout
        self.log_id = log_id
        """No other log has it: a log that was dropped and made anew is another one."""

    @classmethod
    def open(cls, location: str | Path) -> LogReader:
        """Raises LogError if there is no log."""
        storage = storage_at(location)
        found = read_layout(storage)
        if found is None:
            raise LogError("there is no log here", detail=storage.location)
        return cls(storage, *found)

    @property
    def start(self) -> Position:
        """The oldest place that is kept."""
        for _ in range(3):
            numbers = segment_sizes(self._storage)
            if not numbers:
                return Position(0, 0)
            try:
                return self._first_place(min(numbers))
            except FileNotFoundError:  # it was deleted between the two
                continue
        raise LogError("the log is being deleted", detail=self._storage.location)

    @property
    def end(self) -> Position:
        """The place up to which everything is durable, by the log's policy, and published."""
        head = read_head(self._storage)
        return self.start if head is None else head.end

    @property
    def watermark(self) -> int | None:
        """The watermark at the end of the log."""
        head = read_head(self._storage)
        return None if head is None else as_watermark(head.watermark)

    def published(self) -> tuple[Position, int | None]:
        """The end of the log and the watermark there, of the same moment."""
        head = read_head(self._storage)
        return (self.start, None) if head is None else (head.end, as_watermark(head.watermark))

    def place_of(self, row: int) -> Position:
        """The place before the row of this number, or the oldest one that is kept if it is gone."""
        start, end = self.start, self.end
        for number in sorted(segment_sizes(self._storage), reverse=True):
            if number > end.segment:
                continue
            try:
                first = self._first_place(number)
            except FileNotFoundError:  # deleted since they were listed, and all before it
                start = self.start
                break
            if first.row <= row:
                start = first
                break
        return start if row <= start.row else self.limit(start, row - start.row)

    def read(
        self,
        start: Position,
        end: Position | None = None,
        *,
        times: tuple[int | None, int | None] = _ANY_TIME,
    ) -> Iterator[Frame]:
        """The frames from `start` up to `end`, of the first and the last one maybe a part.

        Frames without rows in the closed range of times are left out; of the others all rows
        come. Raises LogGapError if rows from `start` on are gone.
        """
        end = self.end if end is None else end
        for segment, byte, header in self._headers(start, end, for_rows=True):
            if times != _ANY_TIME and not header.overlaps(*times):
                continue
            rows = decode_rows(header, segment.body(byte, header), self.layout.stored)
            yield _cut(whole_frame(segment.number, byte, header, rows), header, start, end)

    def limit(self, start: Position, rows: int) -> Position:
        """The place at most so many rows after `start`, with punctuation that stands there."""
        end = self.end
        left = max(1, rows)
        place = start
        for segment, byte, header in self._headers(start, end):
            skip = start.skip if _is_at(start, segment.number, byte) else 0
            if header.rows - skip > left:
                at = header.first_row + skip + left
                return Position(segment.number, byte, skip + left, at) if left else place
            left -= header.rows - skip
            place = _after(segment.number, byte, header)
        return place

    def split(self, start: Position, end: Position, parts: int) -> list[tuple[Position, Position]]:
        """At most so many ranges of about as many rows each; only large frames are cut."""
        if start >= end:
            return []
        rows, cuts = end.row - start.row, [start]
        for segment, byte, header in self._headers(start, end):
            while len(cuts) < parts:
                wanted = start.row + rows * len(cuts) // parts
                if header.first_row + header.rows < wanted:
                    break
                place = _near(segment.number, byte, header, wanted)
                if place >= end or place.row <= cuts[-1].row:
                    break
                cuts.append(place)
        if len(cuts) > 1 and cuts[-1].row == end.row:
            cuts.pop()  # only punctuation lies behind it
        return list(pairwise([*cuts, end]))

    def check(self, start: Position) -> None:
        """Raises LogGapError if rows from this place on are gone."""
        oldest = self.start
        if start.segment < oldest.segment and start.row < oldest.row:
            raise self._gap(start, oldest)

    def static_rows(self) -> pa.Table | None:
        """The static values of all sensors, by version; None if this is no sensor table's log."""
        if self.layout.sensors is None:
            return None
        return read_static_rows(self._storage.location)

    def _first_place(self, number: int) -> Position:
        with open_segment(self._storage, number) as segment:
            header, begin = segment.good_header()
        return Position(number, begin, 0, header.first_row)

    def _headers(
        self, start: Position, end: Position, *, for_rows: bool = False
    ) -> Iterator[tuple[SegmentReader, int, FrameHeader]]:
        """Every frame of which something lies between the two places."""
        if start >= end:
            return
        place = start
        kept = [one for one in sorted(segment_sizes(self._storage)) if one >= start.segment]
        if not kept or kept[0] > start.segment:
            self.check(start)
        for number in kept:
            if number > end.segment:
                return
            try:
                with open_segment(self._storage, number) as segment:
                    begin, stop = _span(segment, start, end)
                    walk = segment.frames if for_rows else segment.headers
                    for byte, header in walk(begin, stop):
                        yield segment, byte, header
                        place = _after(number, byte, header)
            except FileNotFoundError:  # deleted since they were listed
                raise self._gap(place, self.start) from None

    def _gap(self, place: Position, oldest: Position) -> LogGapError:
        gone = max(0, oldest.row - place.row)
        return LogGapError(
            "rows of the log are gone before they were read",
            detail=f"{gone} rows of {self._storage.location}, from row {place.row} on",
            hint="the log was full, or its history has passed; go on at its oldest row",
            rows=gone,
            oldest=oldest,
        )


def whole_frame(number: int, byte: int, header: FrameHeader, rows: pa.RecordBatch) -> Frame:
    """A frame with all of its rows."""
    start = Position(number, byte, 0, header.first_row)
    return Frame(rows, as_watermark(header.watermark), start, _after(number, byte, header))


def _span(segment: SegmentReader, start: Position, end: Position) -> tuple[int, int]:
    """The bytes of a segment in which the frames between the two places begin."""
    _, begin = segment.good_header()
    if segment.number == start.segment:
        begin = max(begin, start.byte)
    if segment.number == end.segment:
        return begin, min(segment.size, end.byte + bool(end.skip))
    return begin, segment.size


def _after(number: int, byte: int, header: FrameHeader) -> Position:
    return Position(number, byte + header.length, 0, header.first_row + header.rows)


def _near(number: int, byte: int, header: FrameHeader, row: int) -> Position:
    """A place in a frame, or behind it, where this row begins or soon after.

    Whoever reads a part of a frame decodes all of it: a small one is left whole.
    """
    inside = row - header.first_row
    if header.rows < _LARGE or not 0 < inside < header.rows:
        return _after(number, byte, header)
    return Position(number, byte, inside, row)


def _is_at(place: Position, number: int, byte: int) -> bool:
    return (place.segment, place.byte) == (number, byte)


def _cut(frame: Frame, header: FrameHeader, start: Position, end: Position) -> Frame:
    at = frame.start
    first = start.skip if _is_at(start, at.segment, at.byte) else 0
    last = end.skip if _is_at(end, at.segment, at.byte) else None
    return frame.part(first, last, as_watermark(header.before))
