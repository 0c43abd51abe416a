"""Which segments may be deleted: read by all, older than the history, and not needed to reopen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import pyarrow as pa

from nilometer.log.options import LogOptions
from nilometer.log.packed_segment import PackedFile
from nilometer.log.position import Position
from nilometer.log.segment_files import BASE, SegmentFile, segment_files
from nilometer.log.segment_reader import SegmentReader, one_segment, open_files
from nilometer.log.storage import Storage

_HOUR: Final = 3_600_000_000
_DAY: Final = 24 * _HOUR
_PARTS_OF_HISTORY: Final = 8


@dataclass(frozen=True)
class Segment:
    """A file of segments, as far as retention is concerned: one that grows, or packed ones."""

    number: int
    """The number of its first segment."""
    size: int
    """Its size in storage."""
    first_row: int
    created: int
    keys: int
    """How many delivery keys the log had before it."""
    last: int
    """The number of its last segment, and"""
    length: int
    """the position at which that one ends."""
    schema: pa.Schema
    name: str
    generation: int = 0
    """How often its rows were packed."""

    @property
    def end(self) -> Position:
        return Position(self.last, self.length)

    @property
    def is_base(self) -> bool:
        return self.name.endswith(BASE)


def list_segments(storage: Storage, schema: pa.Schema) -> list[Segment]:
    """All segments of a log, one for each file that holds them, the oldest first.

    `schema`: the one that most of them have. Equal ones share one object: there may be very many.
    """
    segments: list[Segment] = []
    for file, opened in open_files(storage, segment_files(storage)):
        one = _described(file, opened)
        schemas = [schema] if not segments else [schema, segments[-1].schema]
        same = (other for other in schemas if other.equals(one.schema, check_metadata=True))
        segments.append(replace(one, schema=next(same, one.schema)))
    return segments


def _described(file: SegmentFile, opened: SegmentReader | PackedFile) -> Segment:
    first = one_segment(opened, file.first)
    header, _ = first.good_header()
    last = one_segment(opened, file.last)
    return Segment(
        file.first,
        opened.size,
        header.first_row,
        header.created,
        header.keys,
        file.last,
        last.size,
        header.schema,
        file.name,
        file.generation,
    )


def age_to_end(options: LogOptions) -> int:
    """The age at which a segment is ended even if not full, so that it can be deleted in time."""
    return max(_HOUR, min(_DAY, options.history // _PARTS_OF_HISTORY))


def deletable(
    segments: Sequence[Segment],
    committed: Iterable[Position],
    options: LogOptions,
    now: int,
    keys: int,
    *,
    whatever_age: bool = False,
) -> list[Segment]:
    """The oldest segments that nobody needs, never the last one.

    `committed`: the positions before which each reader needs nothing; `keys`: how many delivery
    keys the log has had; `whatever_age`: the history is ignored.
    """
    if options.keeps_everything and not whatever_age:
        return []
    places = list(committed)
    needless = []
    for one, following in pairwise(segments):
        unread = any(place < one.end for place in places)
        young = not whatever_age and now - following.created < options.history
        keyed = following.keys > one.keys and keys - following.keys < options.keys_kept
        if unread or young or keyed:
            break
        needless.append(one)
    return needless
