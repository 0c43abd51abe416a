"""A copy of a log in another location, also of another kind.

Every row keeps its position, so whoever has read up to some point continues there, and the copy
keeps the id of the log. The other location has no log before all of it is there: its layout is
written last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.frame_format import Chunks
from nilometer.log.head import HEAD, Head
from nilometer.log.local_storage import LOCK
from nilometer.log.location import storage_at
from nilometer.log.published import LAYOUT, read_head, read_layout
from nilometer.log.recovery import LogState, recover
from nilometer.log.segment_files import (
    SegmentFile,
    base_name,
    pack_name,
    parse_name,
    segment_files,
)
from nilometer.log.segment_format import segment_name, with_length
from nilometer.log.segment_reader import SegmentReader
from nilometer.log.storage import OpenFile, SegmentFiles, Storage

_BLOCK: Final = 8 << 20
_BESIDE: Final = ("readers", "static")
"""Folders with metadata of a log."""


def copy_log(source: str, to: str) -> int | None:
    """Copy a log that nobody writes; returns the bytes of its segments, or None if there is no log.

    What an interrupted copy has left in the other location is replaced.
    """
    storage, target = storage_at(source), storage_at(to)
    if read_layout(storage) is None:
        return None
    target.remove()
    target.make()
    with storage.claim(), target.claim():
        state = _require_whole(storage)
        size = sum(_copy_segments(storage, target, state)) if state is not None else 0
        for name in _files_beside(storage):
            target.write(name, [storage.read(name)])
        target.write(LAYOUT, [storage.read(LAYOUT)])
        _require_same(storage, target, state)
    return size


def _require_whole(storage: Storage) -> LogState | None:
    """Where the log ends; None if it has no segments."""
    recovered = recover(storage)
    if recovered is None:
        return None
    if recovered.seen > recovered.state.end:
        raise LogError(
            "rows of the log are lost, and it has not been opened since",
            detail=f"{storage.location} ends before a place up to which it was read",
            hint="open the database once, which repairs the log, and try again",
        )
    return recovered.state


def _copy_segments(storage: Storage, target: Storage, state: LogState) -> Iterator[int]:
    with closing(target.segments()) as segments:
        for file in segment_files(storage):
            if file.is_packed:
                yield _copy_packed(storage, target, file)
            else:
                last = state.end.byte if file.first == state.end.segment else None
                yield _copy_segment(storage, segments, file.first, last)
        segments.sync()
        end = (state.end.segment, state.end.byte)
        segments.publish(Head(state.end, state.watermark, end).to_bytes())


def _copy_packed(storage: Storage, target: Storage, file: SegmentFile) -> int:
    """Copy packed segments, under a name that precedes those of the next writer."""
    named = parse_name(file.name)
    assert named is not None
    name = (
        base_name(named.first, target.term)
        if named.is_base
        else pack_name(named.first, named.last, named.generation, target.term)
    )
    with storage.open(file.name) as opened:
        target.put_aside(name, _blocks(opened, 0, opened.size))
        size = opened.size
    target.show(name)
    return size


def _copy_segment(storage: Storage, segments: SegmentFiles, number: int, last: int | None) -> int:
    """Copy a segment up to its last byte, with a header in the format of the other location."""
    with storage.open(segment_name(number)) as opened:
        _, begin = SegmentReader(opened, number).good_header()
        end = opened.size if last is None else last
        header = bytes(opened.read_at(0, begin))
        segments.begin(number, with_length(header, end if segments.whole else 0))
        frames: Iterable[Chunks] = ([one] for one in _blocks(opened, begin, end))
        segments.add(begin, frames)
    return end


def _blocks(file: OpenFile, begin: int, end: int) -> Iterator[pa.Buffer]:
    while begin < end:
        block = file.read_at(begin, min(_BLOCK, end - begin))
        if not block.size:
            raise LogError("the log is damaged", detail=f"a file of it ends at byte {begin}")
        yield block
        begin += block.size


def _files_beside(storage: Storage) -> Iterator[str]:
    """The files of a log beside its segments: readers' offsets, static values."""
    for name, _ in storage.files():
        is_own = name in (HEAD, LAYOUT, LOCK) or not name.endswith(".json")
        if not is_own and parse_name(name) is None and not name.startswith("."):
            yield name
    for folder in _BESIDE:
        for name, _ in storage.files(folder):
            if not name.startswith(".") and name != LOCK:
                yield f"{folder}/{name}"


def _require_same(storage: Storage, target: Storage, state: LogState | None) -> None:
    """Refuse a copy whose end is not where it should be."""
    head, expected = read_head(target), None if state is None else (state.end, state.watermark)
    if (None if head is None else (head.end, head.watermark)) != expected:
        raise LogError(
            "the copy of a log differs from the original",
            detail=f"{target.location} ends at {head}, {storage.location} at {expected}",
        )
