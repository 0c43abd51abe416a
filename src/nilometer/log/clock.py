"""The default clocks of logs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from nilometer.model.time import format_duration

_LOG: Final = logging.getLogger("nilometer.clock")
_JUMP: Final = 10_000_000
_LASTING: Final = 60_000_000


def now_micros() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def ticks_micros() -> int:
    """Microseconds of a clock that is never set; it runs while the machine sleeps, if possible."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000


class SteadyClock:
    """The system clock without its jumps; it never goes back.

    Readings that bear the time of their arrival must not get earlier than others before them: one
    wrong second in the future would hold all that follow. So a jump forward of more than ten
    seconds counts once it has lasted for a minute; until then time runs on as before. After a
    jump back, time runs at half speed until it is right again.
    """

    def __init__(
        self,
        wall: Callable[[], int] = now_micros,
        ticks: Callable[[], int] = ticks_micros,
        say: Callable[[str], None] = _LOG.warning,
    ) -> None:
        self.wall = wall
        """The clock of the system."""
        self._ticks = ticks
        self._say = say
        self._lock = threading.Lock()
        self._now = wall()
        self._tick = ticks()
        self._jumped: int | None = None
        """When a jump forward was first seen."""
        self._is_late = False

    def __call__(self) -> int:
        with self._lock:
            wall, tick = self.wall(), self._ticks()
            passed = max(0, tick - self._tick)
            self._tick = tick
            self._now = self._next(wall, self._now + passed, passed)
            return self._now

    def _next(self, wall: int, steady: int, passed: int) -> int:
        ahead = wall - steady
        if ahead > _JUMP:
            return self._after_a_jump(wall, steady, ahead)
        if self._jumped is not None:
            self._jumped = None
            self._say("the system clock has jumped back to where it was")
        is_late = ahead < -_JUMP
        if is_late and not self._is_late:
            self._say(
                f"the system clock has jumped back by {format_duration(-ahead)}: until it "
                "has caught up, arrival times advance at half speed"
            )
        self._is_late = is_late
        return max(wall, steady - passed // 2)

    def _after_a_jump(self, wall: int, steady: int, ahead: int) -> int:
        if self._jumped is None:
            self._jumped = self._tick
            self._say(
                f"the system clock has jumped ahead by {format_duration(ahead)}: arriving "
                f"readings get the new time once it has lasted for {format_duration(_LASTING)}"
            )
        if self._tick - self._jumped < _LASTING:
            return steady
        self._jumped = None
        self._say(
            "the clock jump has persisted: from now on readings are stamped with the new time"
        )
        return wall
