"""Reads frames of one segment, or only their headers, through a window over the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.frame_format import HEADER, FrameHeader, checksum
from nilometer.log.segment_format import (
    FIXED,
    SegmentHeader,
    header_size,
    read_header,
    segment_name,
)
from nilometer.log.storage import OpenFile, Storage

_AHEAD_FOR_HEADERS: Final = 16 << 10
_AHEAD_FOR_FRAMES: Final = 1 << 20


class SegmentReader:
    """One open segment."""

    def __init__(self, file: OpenFile, number: int) -> None:
        self.number = number
        self._file = file
        self._window = pa.py_buffer(b"")
        self._window_start = 0
        self.size = file.size

    def header(self) -> tuple[SegmentHeader, int] | None:
        """The segment's header and its length, or None if there is no whole one."""
        size = header_size(memoryview(self._bytes(0, FIXED, self.size, _AHEAD_FOR_HEADERS)))
        if size is None:
            return None
        found = read_header(memoryview(self._bytes(0, size, self.size, _AHEAD_FOR_HEADERS)))
        if found is None or found.length > self.size:
            return None
        return found, size

    def good_header(self) -> tuple[SegmentHeader, int]:
        """The segment's header and its length; raises LogError if it is damaged."""
        found = self.header()
        if found is None:
            raise self.damaged(0)
        return found

    def headers(
        self, begin: int, end: int, ahead: int = _AHEAD_FOR_HEADERS
    ) -> Iterator[tuple[int, FrameHeader]]:
        """Where frames begin and their headers, for those that begin in begin … end-1.

        Raises LogError at the first one that is damaged.
        """
        while begin < end:
            found = self.frame_header(begin, ahead)
            if found is None:
                raise self.damaged(begin)
            yield begin, found
            begin += found.length

    def frame_header(self, byte: int, ahead: int = _AHEAD_FOR_HEADERS) -> FrameHeader | None:
        """The header of the frame that begins here, or None if no whole frame does."""
        found = FrameHeader.from_bytes(memoryview(self._bytes(byte, HEADER, self.size, ahead)))
        return found if found is not None and byte + found.length <= self.size else None

    def frames(self, begin: int, end: int) -> Iterator[tuple[int, FrameHeader]]:
        """The same as `headers`, for one who reads most bodies too."""
        return self.headers(begin, end, _AHEAD_FOR_FRAMES)

    def body(self, byte: int, header: FrameHeader) -> pa.Buffer:
        """What follows the header of the frame that begins here; raises LogError if damaged."""
        found = self.good_body(byte, header)
        if found is None:
            raise self.damaged(byte)
        return found

    def good_body(self, byte: int, header: FrameHeader) -> pa.Buffer | None:
        length = header.length - HEADER
        found = self._bytes(byte + HEADER, length, self.size, 0)
        return found if len(found) == length and checksum([found]) == header.body_crc else None

    def damaged(self, byte: int) -> LogError:
        return LogError(
            "the log is damaged",
            detail=f"segment {segment_name(self.number)}, byte {byte}: "
            "no whole frame with a good checksum",
            hint="restore the file from a copy; what lies before and after is not touched",
        )

    def _bytes(self, start: int, length: int, end: int, ahead: int) -> pa.Buffer:
        at = start - self._window_start
        if at < 0 or at + length > len(self._window):
            wanted = min(max(length, ahead), max(0, end - start))
            self._window, self._window_start, at = self._file.read_at(start, wanted), start, 0
        return self._window.slice(at, min(length, len(self._window) - at))


@contextmanager
def open_segment(storage: Storage, number: int) -> Iterator[SegmentReader]:
    """The segment of this number; raises FileNotFoundError."""
    with storage.open(segment_name(number)) as file:
        yield SegmentReader(file, number)
