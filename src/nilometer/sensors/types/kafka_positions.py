"""Where to resume a topic: positions as they are kept in the log, and whether they still exist.

A position is the offset of the next message of a partition. Each row is stored with its own
position, and the last row of each poll with those of all partitions: whatever was stored before a
crash, the greatest position of each partition is among the keys that a log returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from nilometer.errors import InputError

FROM_START: Final = "start"
FROM_NOW: Final = "now"
FAIL: Final = "fail"


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


Positions: TypeAlias = Mapping[Place, int]


class HeldOffsets(NamedTuple):
    """The offsets that a partition holds: from `low`, before `high`."""

    low: int
    high: int


@dataclass(frozen=True)
class Begin:
    """Where to start reading a partition."""

    place: Place
    offset: int
    kept: int
    """Messages before this offset had been kept while nobody was listening."""
    gone: int = 0
    """How many offsets before it no longer exist."""

    @property
    def reason(self) -> str:
        """Why messages are missing, in words."""
        return (
            f"offsets {self.offset - self.gone} to {self.offset - 1} of {self.place} were removed "
            "by the retention of the topic before they were read"
        )


def cluster_mark(cluster: str | None) -> str:
    """Distinguishes the positions in one cluster from those in another."""
    return blake2b((cluster or "").encode(), digest_size=4).hexdigest()


def spell(mark: str, positions: Iterable[tuple[Place, int]]) -> bytes:
    """Positions as a key of the log.

    >>> spell("0011aabb", [(Place("plant", 0), 17), (Place("plant", 1), 4)])
    b'0011aabb plant/0:17,plant/1:4'
    """
    return f"{mark} {','.join(f'{place}:{offset}' for place, offset in positions)}".encode()


def read_positions(mark: str, keys: Iterable[bytes]) -> dict[Place, int]:
    """The greatest stored position of every partition of a cluster.

    >>> read_positions("0011aabb", [b"0011aabb plant/0:17,plant/1:4", b"0011aabb plant/0:18"])
    {Place(topic='plant', partition=0): 18, Place(topic='plant', partition=1): 4}
    """
    positions: dict[Place, int] = {}
    for key in sorted(keys):
        of, _, listed = key.decode(errors="replace").partition(" ")
        for part in listed.split(",") if of == mark else ():
            name, _, offset = part.rpartition(":")
            topic, _, partition = name.rpartition("/")
            if topic and partition.isdecimal() and offset.isdecimal():
                place = Place(topic, int(partition))
                positions[place] = max(positions.get(place, 0), int(offset))
    return positions


def begin(
    held: Mapping[Place, HeldOffsets],
    known: Positions,
    start: Callable[[Place, HeldOffsets], int],
    when_reset: str,
) -> list[Begin]:
    """Where to start reading partitions: after what was stored; for new topics, per `start`.

    A partition that was added to a topic is read from its first message on.
    """
    topics = {place.topic for place in known}
    return [
        _resume(place, bounds, known.get(place, 0), when_reset)
        if place.topic in topics
        else Begin(place, start(place, bounds), bounds.high)
        for place, bounds in held.items()
    ]


def _resume(place: Place, held: HeldOffsets, position: int, when_reset: str) -> Begin:
    if position < held.low:
        return Begin(place, held.low, held.high, held.low - position)
    if position <= held.high:
        return Begin(place, position, held.high)
    if when_reset == FAIL:
        raise InputError(
            f"{place} ends before offset {position}, from which reading was to resume",
            detail=f"it holds offsets {held.low} to {held.high}: the topic was recreated, or the "
            "cluster has lost messages",
            hint="ALTER STREAM … SET (when_reset = 'start') reads everything that is there, "
            "'now' only what arrives from now on",
        )
    offset = held.low if when_reset == FROM_START else held.high
    return Begin(place, offset, held.high)
