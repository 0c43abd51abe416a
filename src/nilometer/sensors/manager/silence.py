"""Which of a stream's sensors are silent, since when, and what that holds up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nilometer.sensors.manager.arrivals import Arrivals
from nilometer.sensors.manager.sensor_clock import SensorClock
from nilometer.sensors.manager.sensor_events import tell_more_silent, tell_silent, tell_speaks
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.status import SensorState

_MOST_NAMED: Final = 20
"""At most this many sensors are named when they fall silent at the same time."""
_PAUSE: Final = 10_000_000
"""A watch that has not run for this long was suspended, and has received nothing."""
_OVER: Final = (SensorState.ENDED, SensorState.FAILED)
"""A sensor that will send nothing more is not silent."""


@dataclass(frozen=True)
class StreamSilence:
    """The silence of a stream; instants are microseconds since 1970."""

    silent: int = 0
    """How many of its sensors are silent."""
    silent_since: int | None = None
    """Since when all of them are; None: some are not."""
    held_by: str | None = None
    """The sensor that holds the watermark back; None: nothing does, or no single one."""
    held_since: int | None = None
    """Since when silence has kept the watermark from advancing; None: it does not."""


class SilenceWatch:
    """Checks the sensors of one stream regularly, and reports changes."""

    def __init__(self, stream: str, arrivals: Arrivals, time: SensorClock) -> None:
        self._stream = stream
        self._arrivals = arrivals
        self._time = time
        self.current = StreamSilence()
        self._looked: int | None = None

    def look(self, records: Iterable[SensorRecord], now: int, *, deaf: bool) -> StreamSilence:
        """Find silent sensors; `deaf`: sensors must wait to be read, so none is silent."""
        self._arrivals.refresh()
        slept = self._looked is not None and now - self._looked > _PAUSE
        self._looked = now
        wanted = [one for one in records if one.state not in _OVER]
        fallen, back = [], []
        for one in wanted:
            was_silent = one.silent_since is not None
            if deaf or slept:
                one.listened_since = now
            self._judge(one, now)
            if was_silent and one.silent_since is None:
                back.append(one)
            elif not was_silent and one.silent_since is not None:
                fallen.append(one)
        for one in fallen[:_MOST_NAMED]:
            tell_silent(one, now)
        if (more := len(fallen) - _MOST_NAMED) > 0:
            tell_more_silent(self._stream, more)
        for one in back[:_MOST_NAMED]:
            tell_speaks(one)
        self.current = self._sum_up({one.number: one for one in wanted})
        return self.current

    def _judge(self, one: SensorRecord, now: int) -> None:
        heard = self._arrivals.heard(one.number)
        one.expected = self._arrivals.expected(one.number)
        if one.silent_since is not None:
            if heard is None or heard <= one.silent_since:
                return
            one.silent_since = None
        last = max(one.listened_since, heard or 0)
        if now - last > self._arrivals.limit(one.number):
            one.silent_since = one.listened_since if heard is None else heard

    def _sum_up(self, wanted: dict[int, SensorRecord]) -> StreamSilence:
        silences = [one.silent_since for one in wanted.values() if one.silent_since is not None]
        since = max(silences) if silences and len(silences) == len(wanted) else None
        by = wanted.get(-1 if (number := self._time.held_by) is None else number)
        is_held = by is not None and (
            by.silent_since is not None or self._time.is_behind(by.number, self._limit(by))
        )
        held_since = None if by is None else by.silent_since
        if by is None and since is not None and not self._time.follows_clock:
            held_since = since  # all are idle: the watermark stays
        return StreamSilence(
            len(silences),
            since,
            by.name if by is not None and is_held else None,
            held_since,
        )

    def _limit(self, one: SensorRecord) -> int:
        return self._arrivals.limit(one.number)
