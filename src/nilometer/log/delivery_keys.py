"""The keys by which rows that are delivered again are known, as frames keep them."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.log.frame_format import decode_keys
from nilometer.log.segment_reader import open_segment
from nilometer.log.storage import Storage


def newest_keys(
    storage: Storage, segments: Sequence[int], end: tuple[int, int], most: int
) -> list[bytes]:
    """The last keys before the end (segment, byte) of a log, the newest one last."""
    found: list[bytes] = []
    for number in reversed(segments):
        if len(found) >= most:
            break
        stop = end[1] if number == end[0] else None
        found = _keys_of(storage, number, stop) + found
    return found[-most:] if most > 0 else []


def _keys_of(storage: Storage, number: int, stop: int | None) -> list[bytes]:
    found: list[bytes] = []
    with open_segment(storage, number) as segment:
        _, begin = segment.good_header()
        for byte, header in segment.headers(begin, segment.size if stop is None else stop):
            if header.keys:
                found += decode_keys(header, segment.body(byte, header))[1]
    return found
