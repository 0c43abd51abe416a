"""The transactions of a log, in order: what was appended at once, without decoding its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nilometer.log.position import Position
from nilometer.log.published import as_watermark
from nilometer.log.segment_files import segment_files
from nilometer.log.segment_reader import AnySegment, open_files
from nilometer.log.storage import Storage

_TRIES: Final = 5


@dataclass(frozen=True)
class Transaction:
    """What one append has added."""

    end: Position
    size: int
    keys: tuple[bytes, ...]
    """Its delivery keys."""
    watermark: int | None
    """The watermark of the log after it."""


def read_transactions(storage: Storage, start: Position, end: Position) -> Iterator[Transaction]:
    """The transactions between two positions where transactions end, or a log begins."""
    place, tries = start, 0
    while True:
        try:
            for one in _walk(storage, place, end):
                yield one
                place, tries = one.end, 0
            return
        except FileNotFoundError:  # deleted or packed since the files were listed
            tries += 1
            if tries >= _TRIES:
                raise


def _walk(storage: Storage, start: Position, end: Position) -> Iterator[Transaction]:
    files = segment_files(storage)
    wanted = [one for one in files if one.last >= start.segment and one.first <= end.segment]
    for _, opened in open_files(storage, wanted):
        for segment in opened.segments(start.segment, end.segment):
            yield from _in_segment(segment, start, end)


def _in_segment(segment: AnySegment, start: Position, end: Position) -> Iterator[Transaction]:
    _, begin = segment.good_header()
    if segment.number == start.segment:
        begin = max(begin, start.byte)
    stop = end.byte if segment.number == end.segment else segment.size
    first, keys = begin, list[bytes]()
    for byte, header in segment.headers(begin, stop):
        if header.keys:
            keys += segment.keys(byte, header)[1]
        if header.more:
            continue
        after = byte + header.length
        place = Position(segment.number, after, 0, header.first_row + header.rows)
        yield Transaction(place, after - first, tuple(keys), as_watermark(header.watermark))
        first, keys = after, []
