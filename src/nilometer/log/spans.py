"""Spans of a log's files: how many bytes a time range takes, and who reads which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nilometer.errors import LogError
from nilometer.log.location import storage_at
from nilometer.log.packed_segment import PackedFile
from nilometer.log.position import Position
from nilometer.log.published import read_head
from nilometer.log.segment_files import SegmentFile, segment_files
from nilometer.log.segment_reader import open_file
from nilometer.log.storage import Storage

Times = tuple[int | None, int | None]
_ANY_TIME: Final[Times] = (None, None)
_TRIES: Final = 5


@dataclass(frozen=True)
class Span:
    """A part of a log that begins with a segment."""

    start: Position
    end: Position
    """The position after it."""
    bytes: int
    """About how many bytes of it are read."""


def stored_bytes(location: str) -> int:
    """The bytes of all files of a log: the most that are ever read of it."""
    return sum(one.size for one in segment_files(storage_at(location)))


def spans_of(location: str, times: Times = _ANY_TIME) -> list[Span]:
    """A span for every file of a log that may have rows within the inclusive time range."""
    storage = storage_at(location)
    for _ in range(_TRIES):
        try:
            return [one for one in _spans(storage, times) if one.bytes]
        except FileNotFoundError:  # deleted or packed since the files were listed
            continue
    raise LogError("the log is being deleted", detail=storage.location)


def gathered(spans: Sequence[Span], parts: int) -> list[Span]:
    """The spans merged into at most this many of about equal size, in their order."""
    total, merged, some = sum(one.bytes for one in spans), list[Span](), list[Span]()
    before = 0
    for one in spans:
        some.append(one)
        before += one.bytes
        if before * parts >= total * (len(merged) + 1):
            merged.append(_joined(some))
            some = []
    return merged


def _joined(some: Sequence[Span]) -> Span:
    return Span(some[0].start, some[-1].end, sum(one.bytes for one in some))


def _spans(storage: Storage, times: Times) -> Iterator[Span]:
    head = read_head(storage)
    if head is None:
        return
    for file in segment_files(storage):
        begin, end = Position(file.first, 0), min(Position(file.last + 1, 0), head.end)
        if begin < end:
            yield Span(begin, end, _bytes(storage, file, times))


def _bytes(storage: Storage, file: SegmentFile, times: Times) -> int:
    if times == _ANY_TIME or not file.is_packed:
        return file.size
    with open_file(storage, file) as opened:
        assert isinstance(opened, PackedFile)
        return opened.bytes_within(*times)
