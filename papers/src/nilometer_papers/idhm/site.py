"""The site: a belt, detectors around the exposed box, and their messages."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

from nilometer_papers.idhm.belt import Belt, BeltSettings, BurstEnded, Move, Place
from nilometer_papers.idhm.boxes import Box, Packing, draw_boxes
from nilometer_papers.idhm.spectrum_model import burst_events

SEED: Final = 1898
PACKING: Final = Packing(known=False, hazardous=0.4)
BELT: Final = "belt"
LEAVES_TO: Final[Mapping[str, Place]] = {"safe": Place.CLEARED, "suspect": Place.DIVERTED}
"""Where a box goes on each recommendation; with any other it stays where it is."""
_KEPT: Final = 256
_AT_ONCE: Final = 8
"""Messages in one answer: one of them may take some hundred kilobytes."""


def box_of(number: int) -> Box:
    """What is in a box of the demo: the same every time."""
    return draw_boxes(PACKING, SEED, number, 1)[0]


@dataclass(frozen=True)
class SiteSettings:
    """The detectors, by name, and the settings of the belt."""

    detectors: Mapping[str, str]
    """The kinds of the detectors by their names, which are numbers."""
    belt: BeltSettings = field(default_factory=BeltSettings)
    live: float = 1.0
    """Seconds of exposure in a burst. If a burst is shorter, the source is that much stronger."""


class Site:
    """Delivers each message once, to whoever asks for it first; any thread may ask."""

    def __init__(self, settings: SiteSettings) -> None:
        self._settings = settings
        self._belt: Belt | None = None
        self._lock = Lock()
        names = (*settings.detectors, BELT)
        self._messages: dict[str, deque[bytes]] = {name: deque(maxlen=_KEPT) for name in names}

    def begin(self, now: int) -> None:
        """Expose the first box."""
        with self._lock:
            self._belt = Belt(now, self._settings.belt)

    def news(self, name: str, now: int) -> list[bytes] | None:
        """The messages of a detector, or the belt, since the last call; None: unknown name."""
        if name not in self._messages:
            return None
        with self._lock:
            self._advance(now)
            waiting = self._messages[name]
            return [waiting.popleft() for _ in range(min(len(waiting), _AT_ONCE))]

    def recommend(self, rows: list[dict[str, Any]], now: int) -> None:
        """Take in the results of a query with the columns box and verdict."""
        with self._lock:
            for row in rows:
                place = LEAVES_TO.get(str(row["verdict"]))
                if self._belt is not None and place is not None:
                    self._belt.recommend(int(row["box"]), place, now)
            self._advance(now)

    def _advance(self, now: int) -> None:
        belt = self._belt
        if belt is None:
            return
        belt.advance(now)
        while belt.moves:
            self._messages[BELT].append(_move_message(belt.moves.popleft()))
        while belt.bursts:
            self._expose(belt.bursts.popleft())

    def _expose(self, burst: BurstEnded) -> None:
        box = box_of(burst.box)
        for name, kind in self._settings.detectors.items():
            # Detectors of one kind see different photons.
            seed = SEED + int(name)
            seen = burst_events(box, kind, burst.number, self._settings.live, seed)
            message = {
                "box": burst.box,
                "burst": burst.number,
                "live": self._settings.live,
                "at": _spelled(burst.at),
                "channels": seen.channels.tolist(),
                "times": seen.times.tolist(),
            }
            self._messages[name].append(_encoded(message))


def _move_message(move: Move) -> bytes:
    return _encoded({"box": move.box, "place": move.place.value, "at": _spelled(move.at)})


def _encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _spelled(instant: int) -> str:
    """An instant in ISO 8601, UTC."""
    seconds, micros = divmod(instant, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06d}Z"
