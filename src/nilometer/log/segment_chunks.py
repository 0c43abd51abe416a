"""The rows of a segment that is still growing, decoded and cached, many frames at a time.

What lies before the published end of a log never changes, so a chunk that was read once is only
ever extended. A small frame costs as much to decode as a thousand rows do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from nilometer.log.block_cache import BlockCache
from nilometer.log.segment_reader import SegmentReader

ROWS: Final = 1 << 17
"""A chunk with this many rows is full."""
_SPAN_BYTES: Final = 200
_MOST_SPANS: Final = 10_000


@dataclass(frozen=True)
class _Span:
    """Consecutive frames: what their headers say."""

    end: int
    """The offset after the last frame."""
    rows: int = 0
    earliest: int = 0
    latest: int = 0

    nbytes: Final = _SPAN_BYTES

    @property
    def is_full(self) -> bool:
        return self.rows >= ROWS

    def overlaps(self, earliest: int | None, latest: int | None) -> bool:
        """Whether it may have rows within the inclusive time range."""
        return self.rows > 0 and (
            (latest is None or self.earliest <= latest)
            and (earliest is None or self.latest >= earliest)
        )


@dataclass(frozen=True)
class _Rows:
    """The rows of frames up to a byte."""

    end: int
    rows: pa.RecordBatch

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)


_spans: Final[BlockCache[_Span]] = BlockCache(_SPAN_BYTES * _MOST_SPANS)
_rows: Final[BlockCache[_Rows]] = BlockCache()


def chunks_of(
    segment: SegmentReader, log: str, end: int, times: tuple[int | None, int | None]
) -> Iterator[pa.RecordBatch]:
    """The rows of a segment up to this byte, in chunks; `log` is the log's location and id.

    Chunks without rows in the inclusive time range are left out. If another reader has read further
    in the meantime, a few more rows may be included.
    """
    begin = segment.good_header()[1]
    while begin < end:
        key = (log, segment.number, begin)
        span = _spans.find(key)
        if span is None or (span.end < end and not span.is_full):
            span = _longer(segment, span or _Span(begin), end)
            _spans.put(key, span)
        if span.overlaps(*times):
            chunk = _rows.find(key)
            if chunk is None or chunk.end < span.end:
                chunk = _read_on(segment, chunk, begin, span.end)
                _rows.put(key, chunk)
            yield chunk.rows
        if not span.is_full:
            return
        begin = span.end


def _longer(segment: SegmentReader, span: _Span, end: int) -> _Span:
    """A span extended by the frames that follow it, until it is full."""
    place, rows = span.end, span.rows
    times = [span.earliest, span.latest] if span.rows else []
    for byte, header in segment.headers(place, end):
        if header.rows:
            times = [min([*times[:1], header.earliest]), max([*times[1:], header.latest])]
            rows += header.rows
        place = byte + header.length
        if rows >= ROWS:
            break
    return _Span(place, rows, *times)


def _read_on(segment: SegmentReader, before: _Rows | None, begin: int, end: int) -> _Rows:
    """The rows of a chunk, including those that were added since."""
    pieces, place = ([], begin) if before is None else ([before.rows], before.end)
    for byte, header in segment.frames(place, end):
        if header.rows:
            pieces.append(segment.rows(byte, header))
    return _Rows(end, pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces))
