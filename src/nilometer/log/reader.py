"""Reads a log in any process while another one writes it, without locks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa

from nilometer.errors import LogError, LogGapError
from nilometer.log.frame import Frame
from nilometer.log.frame_format import FrameHeader
from nilometer.log.layout import Fit, LogLayout, fit_columns
from nilometer.log.location import storage_at
from nilometer.log.packed_segment import PackedFile
from nilometer.log.position import Position
from nilometer.log.published import as_watermark, read_head, read_layout
from nilometer.log.segment_chunks import chunks_of
from nilometer.log.segment_files import SegmentFile, segment_files
from nilometer.log.segment_reader import AnySegment, SegmentReader, open_files, open_first
from nilometer.log.storage import Storage

_ANY_TIME: Final = (None, None)
_LARGE: Final = 1 << 16
_TRIES: Final = 5


@dataclass(frozen=True)
class Base:
    """The answer of a changelog at one instant, as changes that replace all earlier ones."""

    start: Position
    end_row: int
    """The row number of the first change after it."""
    watermark: int
    """The time just after the answer's: changes from then on are read as they were written."""

    @property
    def rows(self) -> int:
        return self.end_row - self.start.row


class LogReader:
    """A log to be read."""

    def __init__(self, storage: Storage, layout: LogLayout, log_id: str) -> None:
        self._storage = storage
        self.layout = layout
        self.log_id = log_id
        """Unique: a log that was dropped and created again has another id."""

    @classmethod
    def open(cls, location: str | Path, layout: LogLayout | None = None) -> LogReader:
        """Open a log; rows are read in this layout, or (None) in the log's current one.

        Raises LogError if there is no log.
        """
        storage = storage_at(location)
        stored = read_layout(storage)
        if stored is None:
            raise LogError("there is no log here", detail=storage.location)
        return cls(storage, layout or stored[0], stored[1])

    @property
    def start(self) -> Position:
        """The oldest offset that is kept."""
        for _ in range(_TRIES):
            files = segment_files(self._storage)
            if not files:
                return Position(0, 0)
            # A writer may delete the oldest files, many of them, faster than they can be listed.
            for file in files[:1] if files[0].is_base else files:
                with suppress(FileNotFoundError):
                    place = self._first_place(file)
                    if file is files[0] or self._is_first(file):
                        return place
                    break
        raise LogError("the log is being deleted", detail=self._storage.location)

    def _is_first(self, file: SegmentFile) -> bool:
        """Whether what was before a file is deleted, and not in a newer file."""
        files = segment_files(self._storage)
        return not files or (files[0].first >= file.first and not files[0].is_base)

    @property
    def base(self) -> Base | None:
        """The base that replaces the oldest changes of a changelog, if they are deleted."""
        for _ in range(_TRIES):
            first = next(iter(segment_files(self._storage)), None)
            if first is None or not first.is_base:
                return None
            try:
                with open_first(self._storage, first) as segment:
                    return _base_in(segment)
            except FileNotFoundError:  # there is a newer one
                continue
        raise LogError("the log is being deleted", detail=self._storage.location)

    @property
    def end(self) -> Position:
        """The offset up to which everything is durable, by the log's policy, and published."""
        head = read_head(self._storage)
        return self.start if head is None else head.end

    @property
    def watermark(self) -> int | None:
        """The watermark at the end of the log."""
        head = read_head(self._storage)
        return None if head is None else as_watermark(head.watermark)

    def published(self) -> tuple[Position, int | None]:
        """The end of the log and the watermark there, read at the same moment."""
        head = read_head(self._storage)
        return (self.start, None) if head is None else (head.end, as_watermark(head.watermark))

    def place_of(self, row: int) -> Position:
        """The offset before the row of this number, or the oldest one kept if it is deleted."""
        start, end = self.start, self.end
        for file in reversed(segment_files(self._storage)):
            if file.first > end.segment:
                continue
            try:
                first = self._first_place(file)
            except FileNotFoundError:  # deleted or packed since they were listed
                return self.place_of(row)
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
        """The frames from `start` up to `end`; the first and the last may be partial.

        Frames without rows in the closed range of times are left out; the others are read
        whole. Raises LogGapError if rows from `start` on are deleted.
        """
        end = self.end if end is None else end
        decoder: _Decoder | None = None
        for segment, byte, header in self._headers(start, end, for_rows=True, times=times):
            if times != _ANY_TIME and not header.overlaps(*times):
                continue
            if decoder is None or decoder.segment is not segment:
                decoder = _Decoder(segment, self.layout)
            rows = decoder.rows(byte, header)
            yield _cut(whole_frame(segment.number, byte, header, rows), header, start, end)

    def batches(
        self,
        times: tuple[int | None, int | None] = _ANY_TIME,
        span: tuple[Position, Position] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """All rows that are kept, in batches as large as stored instead of as frames.

        Batches without rows in the closed range of times are left out; the others are read whole.
        `span`: the offsets between which to read; it begins with a segment.
        """
        (place, end), tries = span or (self.start, self.end), 0
        while place < end:
            files = [one for one in segment_files(self._storage) if one.last >= place.segment]
            wanted = [one for one in files if Position(one.first, 0) < end]
            if not wanted:
                return
            try:
                for file, opened in open_files(self._storage, wanted):
                    tries = _TRIES  # what was yielded must not be yielded again
                    after = Position(file.last + 1, 0)
                    is_whole = file.first >= place.segment and file.last < end.segment
                    if isinstance(opened, SegmentReader):
                        stop = end.byte if opened.number == end.segment else opened.size
                        yield from self._chunks(opened, stop, times)
                    elif is_whole and opened.counts_whole:
                        yield from self._blocks(opened, times)
                    else:
                        begin = max(place, Position(file.first, 0))
                        for frame in self.read(begin, min(end, after), times=times):
                            yield frame.rows
                    place, tries = after, 0
            except FileNotFoundError:  # deleted or packed since the files were listed
                tries += 1
                if tries > _TRIES:
                    raise LogError(
                        "the log is being deleted", detail=self._storage.location
                    ) from None

    def _blocks(
        self, opened: PackedFile, times: tuple[int | None, int | None]
    ) -> Iterator[pa.RecordBatch]:
        if opened.footer.overlaps(*times):
            fit = _Fitted(opened.heads[1], self.layout)
            yield from map(fit, opened.batches(*times))

    def _chunks(
        self, opened: SegmentReader, stop: int, times: tuple[int | None, int | None]
    ) -> Iterator[pa.RecordBatch]:
        fit = _Fitted(opened.good_header()[0].schema, self.layout)
        log = f"{self._storage.location} {self.log_id}"
        yield from map(fit, chunks_of(opened, log, stop, times))

    def limit(self, start: Position, rows: int) -> Position:
        """The offset at most this many rows after `start`, including punctuation there."""
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
        """At most this many ranges of about equally many rows; only large frames are cut."""
        if start >= end:
            return []
        rows, cuts = end.row - start.row, [start]
        for segment, byte, header in self._headers(start, end):
            while len(cuts) < parts:
                row = start.row + rows * len(cuts) // parts
                if header.first_row + header.rows < row:
                    break
                place = _near(segment.number, byte, header, row)
                if place >= end or place.row <= cuts[-1].row:
                    break
                cuts.append(place)
        if len(cuts) > 1 and cuts[-1].row == end.row:
            cuts.pop()  # only punctuation follows it
        return list(pairwise([*cuts, end]))

    def check(self, start: Position) -> None:
        """Raise LogGapError if rows from this offset on are deleted."""
        first = next(iter(segment_files(self._storage)), None)
        if first is not None and not first.is_base and first.first <= start.segment:
            return
        base = self.base
        if base is not None:
            if start < base.start and start.row < base.end_row:
                raise self._gap(start, base.start, base)
            return
        oldest = self.start
        if start.segment < oldest.segment and start.row < oldest.row:
            raise self._gap(start, oldest)

    def _first_place(self, file: SegmentFile) -> Position:
        with open_first(self._storage, file) as segment:
            header, begin = segment.good_header()
        return Position(file.first, begin, 0, header.first_row)

    def _headers(
        self,
        start: Position,
        end: Position,
        *,
        for_rows: bool = False,
        times: tuple[int | None, int | None] = _ANY_TIME,
    ) -> Iterator[tuple[AnySegment, int, FrameHeader]]:
        """Every frame that lies at least partly between the two offsets."""
        if start >= end:
            return
        place, tries = start, 0
        while True:
            try:
                for segment, byte, header in self._walk(place, end, for_rows, times):
                    yield segment, byte, header
                    place, tries = _after(segment.number, byte, header), 0
                return
            except FileNotFoundError:  # deleted or packed since the files were listed
                self.check(place)
                tries += 1
                if tries >= _TRIES:
                    raise LogError(
                        "the log is being deleted", detail=self._storage.location
                    ) from None

    def _walk(
        self,
        start: Position,
        end: Position,
        for_rows: bool,
        times: tuple[int | None, int | None],
    ) -> Iterator[tuple[AnySegment, int, FrameHeader]]:
        files = [one for one in segment_files(self._storage) if one.last >= start.segment]
        if not files or files[0].first > start.segment or files[0].is_base:
            self.check(start)
        wanted = [one for one in files if one.first <= end.segment and not _is_behind(one, start)]
        for _, opened in open_files(self._storage, wanted, whole=for_rows):
            for segment in opened.segments(start.segment, end.segment):
                if not segment.may_hold(*times) or _has_read(segment, start):
                    continue
                begin, stop = _span(segment, start, end)
                walk = segment.frames if for_rows else segment.headers
                for byte, header in walk(begin, stop):
                    yield segment, byte, header

    def _gap(self, place: Position, oldest: Position, base: Base | None = None) -> LogGapError:
        missing = max(0, (oldest.row if base is None else base.end_row) - place.row)
        return LogGapError(
            "rows of the log were deleted before they were read",
            detail=f"{missing} rows of {self._storage.location}, from row {place.row} on",
            hint="the log was full, or its history has expired; continue at its oldest row",
            rows=missing,
            oldest=oldest,
        )


class _Decoder:
    """Decodes the rows of one segment."""

    def __init__(self, segment: AnySegment, layout: LogLayout) -> None:
        self.segment = segment
        self._fitted = _Fitted(segment.good_header()[0].schema, layout)

    def rows(self, byte: int, header: FrameHeader) -> pa.RecordBatch:
        return self._fitted(self.segment.rows(byte, header))


class _Fitted:
    """Fits rows that may have other columns than the log has now."""

    def __init__(self, stored: pa.Schema, layout: LogLayout) -> None:
        self._fit: Fit | None = fit_columns(stored, layout.stored, layout.names)
        self._other = None if stored.equals(layout.stored, check_metadata=True) else layout.stored

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._fit is not None:
            return self._fit(rows)
        if self._other is not None:  # names and metadata are the reader's
            return pa.RecordBatch.from_arrays(rows.columns, schema=self._other)
        return rows


def whole_frame(number: int, byte: int, header: FrameHeader, rows: pa.RecordBatch) -> Frame:
    """A frame with all of its rows."""
    start = Position(number, byte, 0, header.first_row)
    return Frame(rows, as_watermark(header.watermark), start, _after(number, byte, header))


def _is_behind(file: SegmentFile, start: Position) -> bool:
    """Whether a file has nothing more from this offset on, judging by its length."""
    is_last = file.last == start.segment and not file.is_packed
    return is_last and file.size <= start.byte


def _has_read(segment: AnySegment, start: Position) -> bool:
    """Whether a base replaces only changes before an offset that lies outside of it."""
    if not segment.is_base:
        return False
    base = _base_in(segment)
    return start < base.start and start.row >= base.end_row


def _base_in(segment: AnySegment) -> Base:
    header, begin = segment.good_header()
    rows, watermark = header.first_row, header.watermark
    for _, frame in segment.headers(begin, segment.size):
        rows, watermark = frame.first_row + frame.rows, frame.watermark
    return Base(Position(segment.number, begin, 0, header.first_row), rows, watermark)


def _span(segment: AnySegment, start: Position, end: Position) -> tuple[int, int]:
    """The bytes of a segment in which the frames between the two offsets begin."""
    _, begin = segment.good_header()
    if segment.number == start.segment:
        begin = max(begin, start.byte)
    if segment.number == end.segment:
        return begin, min(segment.size, end.byte + bool(end.skip))
    return begin, segment.size


def _after(number: int, byte: int, header: FrameHeader) -> Position:
    return Position(number, byte + header.length, 0, header.first_row + header.rows)


def _near(number: int, byte: int, header: FrameHeader, row: int) -> Position:
    """An offset in a frame, or after it, at this row or soon after.

    Reading a part of a frame decodes all of it, so a small one is left whole.
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
