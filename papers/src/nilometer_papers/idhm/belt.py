"""The belt: boxes wait, are exposed one by one, and leave on one side or the other."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SECOND: Final = 1_000_000
WAITING_BOXES: Final = 3


class Place(StrEnum):
    """Where a box is."""

    WAITING = "waiting"
    EXPOSED = "exposed"
    CLEARED = "cleared"
    DIVERTED = "diverted"


@dataclass(frozen=True)
class Move:
    """A box that is at a place from an instant (microseconds) on."""

    box: int
    place: Place
    at: int


@dataclass(frozen=True)
class BurstEnded:
    """The end of one more burst of the exposed box, at an instant; bursts are counted from 1."""

    box: int
    number: int
    at: int


@dataclass(frozen=True)
class BeltSettings:
    """The speed of the belt; times are microseconds."""

    burst: int = SECOND
    max_bursts: int = 40
    """A box without a recommendation after this many is diverted, to be opened by hand."""
    moving: int = SECOND // 2
    """The time between a box leaving and the exposure of the next one."""


class Belt:
    """Boxes 0, 1, 2, …, each exposed until there is a recommendation for it.

    Everything happens at instants given by the caller; these never go back.

    >>> belt = Belt(0, BeltSettings(burst=10, moving=5))
    >>> [(move.box, move.place.value) for move in belt.moves][:2]
    [(0, 'exposed'), (1, 'waiting')]
    >>> belt.advance(25)
    >>> [(burst.number, burst.at) for burst in belt.bursts]
    [(1, 10), (2, 20)]
    >>> belt.recommend(0, Place.CLEARED, 27)
    >>> belt.moves[-2]
    Move(box=0, place=<Place.CLEARED: 'cleared'>, at=27)
    """

    def __init__(self, started: int, settings: BeltSettings) -> None:
        self.settings = settings
        self.moves: deque[Move] = deque(maxlen=1000)
        """Events so far; whoever consumes them removes them."""
        self.bursts: deque[BurstEnded] = deque(maxlen=1000)
        self._box = 0
        self._exposed_at = started
        self._ended = 0
        """How many bursts the box has had."""
        self._is_exposed = True
        self.moves.append(Move(0, Place.EXPOSED, started))
        for box in range(1, WAITING_BOXES + 1):
            self.moves.append(Move(box, Place.WAITING, started))

    def advance(self, now: int) -> None:
        """Process everything up to an instant, inclusive."""
        while True:
            if not self._is_exposed and self._exposed_at <= now:
                self.moves.append(Move(self._box, Place.EXPOSED, self._exposed_at))
                self._is_exposed = True
            end = self._exposed_at + (self._ended + 1) * self.settings.burst
            if end > now:
                return
            self._ended += 1
            self.bursts.append(BurstEnded(self._box, self._ended, end))
            if self._ended == self.settings.max_bursts:
                self._leave(Place.DIVERTED, end)

    def recommend(self, box: int, place: Place, now: int) -> None:
        """Release a box, if it is still exposed."""
        self.advance(now)
        if box == self._box and self._is_exposed:
            self._leave(place, now)

    def _leave(self, place: Place, at: int) -> None:
        self.moves.append(Move(self._box, place, at))
        self.moves.append(Move(self._box + WAITING_BOXES + 1, Place.WAITING, at))
        self._box += 1
        self._exposed_at = at + self.settings.moving
        self._ended = 0
        self._is_exposed = False
