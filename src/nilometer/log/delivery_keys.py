"""The keys by which repeated rows are recognised, as frames store them."""

from __future__ import annotations

from nilometer.log.segment_files import segment_files
from nilometer.log.segment_reader import AnySegment, open_file
from nilometer.log.storage import Storage


def newest_keys(storage: Storage, end: tuple[int, int], limit: int) -> list[bytes]:
    """The last keys before the end (segment, byte) of a log, the newest one last."""
    keys: list[bytes] = []
    for file in reversed(segment_files(storage)):
        if len(keys) >= limit:
            break
        with open_file(storage, file) as opened:
            segments = opened.segments(file.first, min(file.last, end[0]))
            keys = [key for one in segments for key in _keys_of(one, end)] + keys
    return keys[-limit:] if limit > 0 else []


def keys_since(
    storage: Storage, end: tuple[int, int], batch: tuple[str, int | None]
) -> list[bytes]:
    """The keys in segments begun after this batch, before the end; None: after no batch at all."""
    keys: list[bytes] = []
    for file in reversed(segment_files(storage)):
        with open_file(storage, file) as opened:
            inside: list[AnySegment] = list(opened.segments(file.first, min(file.last, end[0])))
            for segment in reversed(inside):
                if segment.good_header()[0].batches.get(batch[0]) != batch[1]:
                    return keys
                keys = _keys_of(segment, end) + keys
    return keys


def _keys_of(segment: AnySegment, end: tuple[int, int]) -> list[bytes]:
    keys: list[bytes] = []
    _, begin = segment.good_header()
    stop = end[1] if segment.number == end[0] else segment.size
    for byte, header in segment.headers(begin, stop):
        if header.keys:
            keys += segment.keys(byte, header)[1]
    return keys
