"""Reads the frames of one segment, or only their headers, through a window over the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final, TypeAlias

import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.frame_format import (
    HEADER,
    BatchKey,
    FrameHeader,
    checksum,
    decode_keys,
    decode_rows,
)
from nilometer.log.packed_segment import PackedFile, PackedSegment
from nilometer.log.segment_files import SegmentFile
from nilometer.log.segment_format import (
    FIXED,
    SegmentHeader,
    header_size,
    read_header,
    segment_name,
)
from nilometer.log.storage import OpenFile, Storage

_AHEAD_FOR_HEADERS: Final = 16 << 10


class SegmentReader:
    """One open segment as it was written."""

    is_base: Final = False

    def __init__(self, file: OpenFile, number: int) -> None:
        self.number = number
        self._file = file
        self._window = pa.py_buffer(b"")
        self._window_start = 0
        self.size = file.size
        self._header: tuple[SegmentHeader, int] | None = None

    def header(self) -> tuple[SegmentHeader, int] | None:
        """The segment's header and its length, or None if there is no complete one."""
        size = header_size(memoryview(self._bytes(0, FIXED, self.size, _AHEAD_FOR_HEADERS)))
        if size is None:
            return None
        header = read_header(memoryview(self._bytes(0, size, self.size, _AHEAD_FOR_HEADERS)))
        if header is None or header.length > self.size:
            return None
        return header, size

    def good_header(self) -> tuple[SegmentHeader, int]:
        """The segment's header and its length; raises LogError if it is damaged."""
        if self._header is None:
            self._header = self.header()
        if self._header is None:
            raise self.damaged(0)
        return self._header

    def headers(
        self, begin: int, end: int, ahead: int = _AHEAD_FOR_HEADERS
    ) -> Iterator[tuple[int, FrameHeader]]:
        """The positions and headers of the frames that begin at begin … end-1.

        Raises LogError at the first damaged one.
        """
        while begin < end:
            header = self.frame_header(begin, ahead)
            if header is None:
                raise self.damaged(begin)
            yield begin, header
            begin += header.length

    def frame_header(self, byte: int, ahead: int = _AHEAD_FOR_HEADERS) -> FrameHeader | None:
        """The header of the frame that begins here, or None if no complete frame does."""
        header = FrameHeader.from_bytes(memoryview(self._bytes(byte, HEADER, self.size, ahead)))
        return header if header is not None and byte + header.length <= self.size else None

    def frames(self, begin: int, end: int) -> Iterator[tuple[int, FrameHeader]]:
        """The same as `headers`, for a caller that reads most bodies, too."""
        return self.headers(begin, end, self._file.ahead)

    def segments(self, first: int, last: int) -> Iterator[SegmentReader]:
        """This segment, if its number is within first … last."""
        if first <= self.number <= last:
            yield self

    def rows(self, byte: int, header: FrameHeader) -> pa.RecordBatch:
        """The rows of the frame that begins here."""
        return decode_rows(header, self.body(byte, header), self._schema)

    def keys(self, byte: int, header: FrameHeader) -> tuple[BatchKey | None, list[bytes]]:
        """The batch key and the delivery keys of the frame that begins here."""
        return decode_keys(header, self.body(byte, header))

    def content(self, byte: int, header: FrameHeader) -> tuple[pa.RecordBatch, bytes]:
        """The rows of the frame that begins here, and its keys as they are stored."""
        body = self.body(byte, header)
        keys: bytes = body.slice(0, header.keys_length).to_pybytes() if header.keys_length else b""
        return decode_rows(header, body, self._schema), keys

    def may_hold(self, earliest: int | None, latest: int | None) -> bool:
        """Whether it may have rows within the inclusive time range, judging by its frames."""
        return True

    @cached_property
    def _schema(self) -> pa.Schema:
        return self.good_header()[0].schema

    def body(self, byte: int, header: FrameHeader) -> pa.Buffer:
        """The body of the frame that begins here; raises LogError if it is damaged."""
        body = self.good_body(byte, header)
        if body is None:
            raise self.damaged(byte)
        return body

    def good_body(self, byte: int, header: FrameHeader) -> pa.Buffer | None:
        length = header.length - HEADER
        body = self._bytes(byte + HEADER, length, self.size, 0)
        return body if len(body) == length and checksum([body]) == header.body_crc else None

    def damaged(self, byte: int) -> LogError:
        return LogError(
            "the log is damaged",
            detail=f"segment {segment_name(self.number)}, byte {byte}: "
            "no complete frame with a valid checksum",
            hint="restore the file from a copy; rows before and after it are not affected",
        )

    def _bytes(self, start: int, length: int, end: int, ahead: int) -> pa.Buffer:
        at = start - self._window_start
        if at < 0 or at + length > len(self._window):
            size = min(max(length, ahead), max(0, end - start))
            self._window, self._window_start, at = self._file.read_at(start, size), start, 0
        return self._window.slice(at, min(length, len(self._window) - at))


@contextmanager
def open_segment(storage: Storage, number: int) -> Iterator[SegmentReader]:
    """The unpacked segment of this number; raises FileNotFoundError."""
    with storage.open(segment_name(number)) as file:
        yield SegmentReader(file, number)


AnySegment: TypeAlias = SegmentReader | PackedSegment


@contextmanager
def open_file(storage: Storage, file: SegmentFile) -> Iterator[SegmentReader | PackedFile]:
    """An open file of segments; raises FileNotFoundError."""
    with storage.open(file.name) as opened:
        yield _reader_of(storage, file, opened)


def open_files(
    storage: Storage, files: Sequence[SegmentFile], *, whole: bool = False
) -> Iterator[tuple[SegmentFile, SegmentReader | PackedFile]]:
    """Files of segments, each open until the next; raises FileNotFoundError at one's turn.

    `whole`: most of what they hold is wanted.
    """
    each = storage.open_each(((one.name, one.size) for one in files), whole=whole)
    for file, opened in zip(files, each, strict=True):
        yield file, _reader_of(storage, file, opened)


def _reader_of(storage: Storage, file: SegmentFile, opened: OpenFile) -> SegmentReader | PackedFile:
    if file.is_packed:
        return PackedFile(opened, file, storage.location)
    return SegmentReader(opened, file.first)


@contextmanager
def open_first(storage: Storage, file: SegmentFile) -> Iterator[AnySegment]:
    """The first segment of a file."""
    with open_file(storage, file) as opened:
        yield one_segment(opened, file.first)


def one_segment(opened: SegmentReader | PackedFile, number: int) -> AnySegment:
    """The segment of this number in an open file; raises LogError if it is not in it."""
    segment: AnySegment
    for segment in opened.segments(number, number):
        return segment
    raise LogError("the log is damaged", detail=f"segment {number} is missing in its file")
