"""When the sensors of a stream are to speak: as declared, or as each has done so far.

What is learned of a sensor is the longest of its recent gaps, without the outliers. Readings that
come together count as one, and memory is bounded: 64 gaps of each sensor.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, Final

from nilometer.sensors.declaration import DEFAULT_IDLE, Declaration

DECLARED_FACTOR: Final = 3
"""A sensor is silent after so many times the interval that EVERY declares, or"""
LEARNED_FACTOR: Final = 5
"""after so many times the one that was learned, but not before"""
LEAST_SILENCE: Final = 10_000_000
"""so long; and where nothing is known, after"""
UNKNOWN_SILENCE: Final = 60_000_000
"""so long."""
UNKNOWN_IDLE: Final = 300_000_000
"""A sensor of a table of which nothing is known is waited for for so long by default."""
_TOGETHER: Final = 1_000_000
"""What comes within so long comes together."""
_KEPT: Final = 64
_PART: Final = 32
"""One of so many gaps is an outlier."""
_FEW: Final = 5
"""From so many gaps on, at least one is an outlier."""
_MILLI: Final = 1_000
_MOST_MILLIS: Final = (1 << 32) - 1


@dataclass
class Gaps:
    """The recent gaps between arrivals of one sensor, in milliseconds."""

    heard: int | None = None
    """When it spoke last, also before a restart."""
    learned: int | None = None
    """Its interval (microseconds), also that of before a restart."""
    asked: int = 0
    """Once in so long (microseconds) its stream type asks it; 0: it speaks by itself."""
    _begun: int | None = None
    """When what came last began to come; None: it has not spoken since the start."""
    _recent: array[int] = field(default_factory=lambda: array("I"))
    _next: int = 0

    def ask(self, every: float) -> None:
        """Its stream type asks it once in so many seconds."""
        self.asked = round(every * 1_000_000)

    def hear(self, at: int) -> None:
        """A reading has arrived."""
        self.heard = at
        if self._begun is None or at < self._begun:
            self._begun = at
        elif at - self._begun >= _TOGETHER:
            self._add(min((at - self._begun) // _MILLI, _MOST_MILLIS))
            self._begun = at

    def _add(self, gap: int) -> None:
        if len(self._recent) < _KEPT:
            self._recent.append(gap)
        else:
            self._recent[self._next] = gap
            self._next = (self._next + 1) % _KEPT
        ordered = sorted(self._recent)
        outliers = max(len(ordered) // _PART, int(len(ordered) >= _FEW))
        self.learned = ordered[-1 - outliers] * _MILLI


class Arrivals:
    """The sensors of one stream by their numbers; any thread may ask."""

    def __init__(self, declaration: Declaration, known: Mapping[str, Any] | None = None) -> None:
        """`known`: what `to_json` gave before a restart; what is wrong with it is left out."""
        self._every = declaration.every
        self._gaps: dict[int, Gaps] = {}
        self._typical: int | None = None
        for number, one in (known or {}).items():
            if number.isdecimal() and _is_known(one):
                self._gaps[int(number)] = Gaps(one["heard"], one["learned"])
        self.refresh()

    def of(self, number: int) -> Gaps:
        """What is known of a sensor, to be told when it speaks."""
        return self._gaps.setdefault(number, Gaps())

    def heard(self, number: int) -> int | None:
        """When a sensor spoke last, also before a restart."""
        gaps = self._gaps.get(number)
        return None if gaps is None else gaps.heard

    def expected(self, number: int) -> int | None:
        """How often a sensor is to speak: as declared or learned, or as others of its table do."""
        if self._every is not None:
            return self._every
        gaps = self._gaps.get(number)
        learned = None if gaps is None else gaps.learned
        return self._typical if learned is None else learned

    def limit(self, number: int) -> int:
        """After how long a silence a sensor counts as silent."""
        expected = self.expected(number)
        gaps = self._gaps.get(number)
        asked = 0 if gaps is None else DECLARED_FACTOR * gaps.asked
        if expected is None:
            return max(UNKNOWN_SILENCE, asked)
        if self._every is not None:
            return DECLARED_FACTOR * expected
        return max(LEAST_SILENCE, LEARNED_FACTOR * expected, asked)

    def idle(self, number: int) -> int:
        """For how long a sensor of a table that was declared without IDLE is waited for."""
        least = UNKNOWN_IDLE if self.expected(number) is None else DEFAULT_IDLE
        return max(least, self.limit(number))

    def refresh(self) -> None:
        """Find anew what is usual in the table, for sensors of which nothing is known."""
        found = [one.learned for one in list(self._gaps.values()) if one.learned is not None]
        self._typical = median_low(found) if found else None

    def to_json(self) -> dict[str, Any]:
        """What is to be known after a restart."""
        return {
            str(number): {"heard": one.heard, "learned": one.learned}
            for number, one in list(self._gaps.items())
            if one.heard is not None
        }


def _is_known(one: Any) -> bool:
    if not isinstance(one, dict) or not {"heard", "learned"} <= one.keys():
        return False
    return all(value is None or (type(value) is int and value >= 0) for value in one.values())
