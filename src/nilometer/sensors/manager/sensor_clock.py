"""The time of a log with many sensors: which readings are in time, and where the watermark is.

The watermark of the log is the smallest (largest time - lateness) over the sensors that count:
those that are open, have not ended, and have not been silent for `idle`. A sensor that has not sent
anything yet holds it back. Readings are judged in the order in which they will be stored, and the
watermark is only taken together with what was judged before, so no stored reading is older than a
watermark that was stored before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nilometer.model.time import EARLIEST, FOREVER, LATEST, format_duration

_NEVER: Final = -FOREVER


@dataclass
class _Sensor:
    """What is known about the time of one sensor."""

    spoke: int
    """When it last sent something by the clock, or was opened."""
    by_arrival: bool
    """Whether its readings have their time of arrival."""
    largest: int | None = None
    ended: bool = False


class SensorClock:
    """Judges times and computes the watermark; knows sensors by number."""

    def __init__(
        self,
        lateness: int,
        idle: int | None,
        max_ahead: int,
        watermark: int | None = None,
        ends: bool = False,
        idle_of: Callable[[int], int] | None = None,
    ) -> None:
        """`watermark`: what the log has; `ends`: nothing arrives after its sensors have ended;
        `idle_of`: after how long each sensor is idle, where `idle` is only the minimum."""
        self.watermark = watermark
        self.held_by: int | None = None
        """The sensor that holds the watermark back."""
        self._lateness = lateness
        self._idle = idle
        self._idle_of = idle_of
        self._max_ahead = max_ahead
        self._ends = ends
        self._sensors: dict[int, _Sensor] = {}
        self._last_arrival = _NEVER
        self._behind: tuple[int, int] | None = None
        """From which time on arrivals advance at half speed, and the clock at that moment."""
        self._lowest: int | None = None
        self._clocked = False
        self._stale = True

    def open(self, number: int, now: int, *, by_arrival: bool) -> None:
        """Open a sensor; until it sends, it holds the watermark back, unless timed by arrival."""
        sensor = self._sensors.setdefault(number, _Sensor(now, by_arrival))
        sensor.ended, sensor.spoke = False, now
        self._stale = True

    def end(self, number: int) -> None:
        """Note that a sensor will send nothing more."""
        if (sensor := self._sensors.get(number)) is not None:
            sensor.ended = True
            self._stale = True

    def close(self, number: int) -> None:
        """Note that a sensor is no longer wanted."""
        if self._sensors.pop(number, None) is not None:
            self._stale = True

    def wake(self, now: int) -> None:
        """Note that nothing could be received until now: no sensor has been silent."""
        for sensor in self._sensors.values():
            sensor.spoke = max(sensor.spoke, now)
        self._stale = True

    def arrive(self, number: int, at: int) -> int:
        """The time of a reading without one; never less than that of an earlier one."""
        self._arrival_at(at)
        if (sensor := self._sensors.get(number)) is not None and not sensor.by_arrival:
            self._note_reading(number, self._last_arrival, at)
        return self._last_arrival

    def admit(self, number: int, time: int, now: int) -> str | None:
        """Why a reading of this time is refused; None: it is accepted."""
        if (reason := self._refusal(time, now, self._largest(number))) is None:
            self._note_reading(number, time, now)
        return reason

    def admit_many(
        self, number: int, times: NDArray[np.int64], now: int
    ) -> tuple[NDArray[np.bool_], list[tuple[int, str]]]:
        """Like `admit` for many times in order: which are accepted, and why others are not."""
        low = self.watermark if self.watermark is not None else _NEVER
        sound = (times >= max(EARLIEST, low)) & (times <= min(LATEST, now + self._max_ahead))
        seen = np.concatenate(([self._largest(number)], np.where(sound, times, _NEVER)))
        reached = np.maximum.accumulate(seen)[:-1]
        taken = sound & (times >= reached - self._lateness)
        if taken.any():
            self._note_reading(number, int(times[taken].max()), now)
        refused = [
            (at, self._refusal(int(times[at]), now, int(reached[at])) or "")
            for at in np.flatnonzero(~taken).tolist()
        ]
        return taken, refused

    def advance(self, now: int) -> int | None:
        """The watermark after everything judged so far; it never goes back."""
        if self._stale or self._holder_is_idle(now):
            self._survey(now)
        bound = self._bound(now)
        if bound is not None and (self.watermark is None or bound > self.watermark):
            self.watermark = bound
        return self.watermark

    @property
    def follows_clock(self) -> bool:
        """Whether time advances even if nothing arrives."""
        return self._clocked

    def is_behind(self, number: int, by: int) -> bool:
        """Whether a sensor is behind another one by more than this, or has not sent anything while
        others have; safe to call from any thread."""
        others = [one.largest for n, one in list(self._sensors.items()) if n != number]
        ahead = max((one for one in others if one is not None), default=None)
        sensor = self._sensors.get(number)
        if ahead is None or sensor is None:
            return False
        return sensor.largest is None or ahead - sensor.largest > by

    def _arrival_at(self, now: int) -> int:
        """The time of what arrives now.

        If the log is ahead of the clock, which was wrong once, its time advances at half speed
        until the clock catches up: it neither goes back nor stands still.
        """
        low = max(self._last_arrival, _NEVER if self.watermark is None else self.watermark)
        if now >= low:
            self._behind, self._last_arrival = None, now
            return now
        since, then = self._behind = self._behind or (low, now)
        self._last_arrival = max(low, since + (now - then) // 2)
        return self._last_arrival

    def _largest(self, number: int) -> int:
        sensor = self._sensors.get(number)
        return _NEVER if sensor is None or sensor.largest is None else sensor.largest

    def _refusal(self, time: int, now: int, largest: int) -> str | None:
        if not EARLIEST <= time <= LATEST:
            return "its time is before 1700 or after 9999"
        if time > now + self._max_ahead:
            return f"ahead of the clock by {format_duration(time - now)}"
        if time < largest - self._lateness:
            return f"out of order by {format_duration(largest - time)}"
        if self.watermark is not None and time < self.watermark:
            return f"late by {format_duration(self.watermark - time)}"
        return None

    def _note_reading(self, number: int, time: int, now: int) -> None:
        """Note that a sensor has sent a reading of this time."""
        if (sensor := self._sensors.get(number)) is None:
            return
        sensor.spoke = now
        if sensor.by_arrival:
            sensor.by_arrival, self._stale = False, True
        if sensor.largest is None or time > sensor.largest:
            sensor.largest = time
        # The smallest bound moves only with the sensor that sets it.
        if self.held_by is None or number == self.held_by:
            self._stale = True

    def _is_idle(self, number: int, sensor: _Sensor, now: int) -> bool:
        silence = now - sensor.spoke
        if self._idle is None or silence < self._idle:
            return False
        return self._idle_of is None or silence >= self._idle_of(number)

    def _holder_is_idle(self, now: int) -> bool:
        by = self.held_by
        return by is not None and self._is_idle(by, self._sensors[by], now)

    def _survey(self, now: int) -> None:
        """Find the sensor that holds the watermark back, and how far the watermark may advance."""
        self._stale, self._clocked, self._lowest, self.held_by = False, False, None, None
        for number, sensor in self._sensors.items():
            if sensor.ended:
                continue
            if sensor.by_arrival:
                self._clocked = True
            elif not self._is_idle(number, sensor, now):
                if sensor.largest is None:
                    self._lowest, self.held_by = None, number
                    return
                bound = sensor.largest - self._lateness
                if self._lowest is None or bound < self._lowest:
                    self._lowest, self.held_by = bound, number

    def _bound(self, now: int) -> int | None:
        if self.held_by is not None and self._lowest is None:
            return None
        if self._clocked:
            arrival = self._arrival_at(now)
            return arrival if self._lowest is None else min(self._lowest, arrival)
        return self._lowest if self._lowest is not None else self._after_the_end(now)

    def _after_the_end(self, now: int) -> int | None:
        """The watermark once every sensor has ended; None: some have not."""
        if not self._sensors or not all(one.ended for one in self._sensors.values()):
            return None
        known = [one.largest + 1 for one in self._sensors.values() if one.largest is not None]
        if self._ends:
            known.append(now - self._lateness)
        return max(known, default=None)
