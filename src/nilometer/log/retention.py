"""Which segments may be deleted: read by all, older than the history, and not needed to reopen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.published import segment_sizes
from nilometer.log.segment_reader import open_segment
from nilometer.log.storage import Storage

KEYS_KEPT: Final = 10_000
"""The newest delivery keys stay, so that what is delivered again is known after a restart."""


@dataclass(frozen=True)
class Segment:
    """A segment as far as keeping it is concerned."""

    number: int
    size: int
    first_row: int
    created: int
    keys: int
    """How many delivery keys the log had before it."""


def list_segments(storage: Storage) -> list[Segment]:
    """All segments of a log, the oldest first."""
    return [_segment(storage, number) for number in sorted(segment_sizes(storage))]


def _segment(storage: Storage, number: int) -> Segment:
    with open_segment(storage, number) as file:
        header, _ = file.good_header()
        return Segment(number, file.size, header.first_row, header.created, header.keys)


def deletable(
    segments: Sequence[Segment],
    committed: Iterable[Position],
    options: LogOptions,
    now: int,
    keys: int,
) -> list[Segment]:
    """The oldest segments that nobody needs, never the last one.

    `committed`: the places before which each reader needs nothing; `keys`: how many delivery
    keys the log has had.
    """
    if options.keeps_everything:
        return []
    places = list(committed)
    found = []
    for one, following in pairwise(segments):
        unread = any(place < Position(one.number, one.size) for place in places)
        young = now - following.created < options.history
        keyed = following.keys > one.keys and keys - following.keys < KEYS_KEPT
        if unread or young or keyed:
            break
        found.append(one)
    return found
