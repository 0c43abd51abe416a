"""When the sensors of a stream are expected to send: as declared, or as learned from each.

The learned interval of a sensor is the longest of its recent gaps, without the outliers. Readings
that arrive together count as one, and memory is bounded: 64 gaps per sensor.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, Final

from nilometer.sensors.declaration import DEFAULT_IDLE, Declaration

DECLARED_FACTOR: Final = 3
"""A sensor is silent after this many times the interval that EVERY declares, or"""
LEARNED_FACTOR: Final = 5
"""after this many times the learned interval, but not before"""
LEAST_SILENCE: Final = 10_000_000
"""this long; and if no interval is known, after"""
UNKNOWN_SILENCE: Final = 60_000_000
"""this long."""
UNKNOWN_IDLE: Final = 300_000_000
"""How long a sensor of a table is waited for by default if no interval is known."""
_TOGETHER: Final = 1_000_000
"""Arrivals within this time of each other count as one."""
_KEPT: Final = 64
_PART: Final = 32
"""One in this many gaps is an outlier."""
_FEW: Final = 5
"""From this many gaps on, at least one is an outlier."""
_MILLI: Final = 1_000
_MOST_MILLIS: Final = (1 << 32) - 1


@dataclass
class Gaps:
    """The recent gaps between arrivals of one sensor, in milliseconds."""

    heard: int | None = None
    """When its last reading arrived, also before a restart."""
    learned: int | None = None
    """Its interval (microseconds), also the one from before a restart."""
    asked: int = 0
    """The interval at which its stream type asks it (microseconds); 0: it sends by itself."""
    _begun: int | None = None
    """When its latest group of arrivals began; None: nothing has arrived since the start."""
    _recent: array[int] = field(default_factory=lambda: array("I"))
    _next: int = 0

    def ask(self, every: float) -> None:
        """Note that its stream type asks it once in this many seconds."""
        self.asked = round(every * 1_000_000)

    def hear(self, at: int) -> None:
        """Note that a reading has arrived."""
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
    """The sensors of one stream by number; safe to call from any thread."""

    def __init__(self, declaration: Declaration, known: Mapping[str, Any] | None = None) -> None:
        """`known`: what `to_json` returned before a restart; invalid parts are ignored."""
        self._every = declaration.every
        self._gaps: dict[int, Gaps] = {}
        self._typical: int | None = None
        for number, one in (known or {}).items():
            if number.isdecimal() and _is_known(one):
                self._gaps[int(number)] = Gaps(one["heard"], one["learned"])
        self.refresh()

    def of(self, number: int) -> Gaps:
        """The arrival record of a sensor, to be updated when a reading arrives."""
        return self._gaps.setdefault(number, Gaps())

    def heard(self, number: int) -> int | None:
        """When the last reading of a sensor arrived, also before a restart."""
        gaps = self._gaps.get(number)
        return None if gaps is None else gaps.heard

    def expected(self, number: int) -> int | None:
        """The expected interval of a sensor: declared, learned, or that of others in its table."""
        if self._every is not None:
            return self._every
        gaps = self._gaps.get(number)
        learned = None if gaps is None else gaps.learned
        return self._typical if learned is None else learned

    def limit(self, number: int) -> int:
        """How long a sensor must be quiet to count as silent."""
        expected = self.expected(number)
        gaps = self._gaps.get(number)
        asked = 0 if gaps is None else DECLARED_FACTOR * gaps.asked
        if expected is None:
            return max(UNKNOWN_SILENCE, asked)
        if self._every is not None:
            return DECLARED_FACTOR * expected
        return max(LEAST_SILENCE, LEARNED_FACTOR * expected, asked)

    def idle(self, number: int) -> int:
        """How long a sensor of a table that was declared without IDLE is waited for."""
        least = UNKNOWN_IDLE if self.expected(number) is None else DEFAULT_IDLE
        return max(least, self.limit(number))

    def refresh(self) -> None:
        """Recompute what is usual in the table, for sensors whose interval is unknown."""
        intervals = [one.learned for one in list(self._gaps.values()) if one.learned is not None]
        self._typical = median_low(intervals) if intervals else None

    def to_json(self) -> dict[str, Any]:
        """What must be known after a restart."""
        return {
            str(number): {"heard": one.heard, "learned": one.learned}
            for number, one in list(self._gaps.items())
            if one.heard is not None
        }


def _is_known(one: Any) -> bool:
    if not isinstance(one, dict) or not {"heard", "learned"} <= one.keys():
        return False
    return all(value is None or (type(value) is int and value >= 0) for value in one.values())
