"""The outcome for each box: what was decided, how long that took, and whether it was right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import fmean
from typing import Any, TypeAlias

from nilometer_papers.idhm.belt import Place
from nilometer_papers.idhm.boxes import Box

BoxOf: TypeAlias = Callable[[int], Box]


class Decided(StrEnum):
    """What happened to a box."""

    SAFE = "safe"
    SUSPECT = "suspect"
    BY_HAND = "by hand"
    """Nothing was recommended in time."""


@dataclass(frozen=True)
class Outcome:
    """A box that has left the belt."""

    box: Box
    decided: Decided
    seconds: float
    """From exposure until it left."""
    material: str | None
    """The class of a suspect box."""
    confidence: float | None

    @property
    def is_right(self) -> bool | None:
        """Whether a decision is correct; None: there was none."""
        if self.decided is Decided.BY_HAND:
            return None
        return (self.decided is Decided.SUSPECT) == (self.box.hazard is not None)


class Outcomes:
    """Follows the moves of boxes, and the recommended verdicts."""

    def __init__(self) -> None:
        self.settled: list[Outcome] = []
        self._exposed: dict[int, datetime] = {}
        self._verdicts: dict[int, Mapping[str, Any]] = {}
        self._left: dict[int, tuple[Place, datetime]] = {}
        self._last = -1
        """The last box that has left: boxes leave in the order of their numbers."""

    def take_verdicts(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of the query `fused`: all that were there at the time of the last moves."""
        for row in rows:
            if row["box"] > self._last and row["verdict"] in (Decided.SAFE, Decided.SUSPECT):
                self._verdicts.setdefault(row["box"], row)

    def take_moves(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of the query `belt`."""
        for row in rows:
            place = Place(row["place"])
            if place is Place.EXPOSED:
                self._exposed[row["box"]] = row["at"]
            elif place is not Place.WAITING:
                self._left[row["box"]] = (place, row["at"])

    def settle(self, box_of: BoxOf) -> list[Outcome]:
        """The boxes that have left since the last call; `box_of` says what is in a box."""
        news = []
        for number in sorted(self._left.keys() & self._exposed.keys()):
            place, left = self._left.pop(number)
            verdict = self._verdicts.pop(number, None)
            seconds = (left - self._exposed.pop(number)).total_seconds()
            news.append(_outcome(box_of(number), place, seconds, verdict))
            self._last = number
        self.settled += news
        return news


def _outcome(box: Box, place: Place, seconds: float, verdict: Mapping[str, Any] | None) -> Outcome:
    if verdict is None:
        return Outcome(box, Decided.BY_HAND, seconds, None, None)
    decided = Decided.SAFE if place is Place.CLEARED else Decided.SUSPECT
    return Outcome(box, decided, seconds, verdict["class"], verdict["confidence"])


@dataclass(frozen=True)
class Score:
    """How many boxes were decided correctly, and how fast."""

    decided: int
    right: int
    missed: int
    """Hazardous boxes that were let through."""
    false_alarms: int
    by_hand: int
    mean_seconds: float | None

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Score:
        """The score of some boxes."""
        decided = [one for one in outcomes if one.is_right is not None]
        wrong = [one.decided for one in decided if not one.is_right]
        return cls(
            len(decided),
            len(decided) - len(wrong),
            wrong.count(Decided.SAFE),
            wrong.count(Decided.SUSPECT),
            len(outcomes) - len(decided),
            fmean(one.seconds for one in decided) if decided else None,
        )
