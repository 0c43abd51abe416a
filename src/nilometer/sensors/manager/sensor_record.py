"""What is known of one sensor while it is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nilometer.errors import in_one_line
from nilometer.model.secrets import shown_address, shown_text
from nilometer.sensors.manager.status import SensorState, SensorStatus

_SMOOTHING: Final = 0.2
_SHOWN: Final = 300


@dataclass
class SensorRecord:
    """State and counts of a sensor."""

    stream: str
    number: int
    name: str
    address: str
    state: SensorState = SensorState.OPENING
    since: int = 0
    can_wait: bool = True
    by_arrival: bool = False
    readings: int = 0
    errors: int = 0
    last_error: str | None = None
    dead_letters: int = 0
    dropped: int = 0
    """Readings that the manager had no room for."""
    last_value: Any = None
    last_time: int | None = None
    last_arrival: int | None = None
    rate: float = 0.0
    source: Any = None
    """The stream type's object, which counts duplicates and losses of its own."""
    _counted: int = field(default=0, repr=False)

    def to(self, state: SensorState, now: int) -> None:
        """The sensor is in this state from now on."""
        if state != self.state or not self.since:
            self.state, self.since = state, now

    def note_error(self, error: BaseException | str) -> None:
        self.errors += 1
        text = error if isinstance(error, str) else in_one_line(error)
        self.last_error = shown_text(text)[:_SHOWN]

    def seen(self, value: Any, time: int, arrived: int) -> None:
        """A reading that will be stored."""
        self.last_value, self.last_time, self.last_arrival = value, time, arrived

    def note_rate(self, seconds: float) -> None:
        """Smooth the rate; called every so many seconds."""
        recent = (self.readings - self._counted) / seconds
        self.rate += (recent - self.rate) * (_SMOOTHING if self._counted else 1.0)
        self._counted = self.readings

    def status(self) -> SensorStatus:
        """The present state, for others to keep."""
        lag = None
        if self.last_arrival is not None and self.last_time is not None:
            lag = self.last_arrival - self.last_time
        return SensorStatus(
            stream=self.stream,
            number=self.number,
            sensor=self.name,
            address=shown_address(self.address),
            state=self.state,
            since=self.since,
            readings=self.readings,
            rate=round(self.rate, 3),
            last_value=None if self.last_value is None else _reading_text(self.last_value),
            last_time=self.last_time,
            last_arrival=self.last_arrival,
            lag=lag,
            errors=self.errors,
            last_error=None if self.last_error is None else shown_text(self.last_error),
            dead_letters=self.dead_letters,
            duplicates=getattr(self.source, "duplicates", 0),
            dropped=self.dropped + getattr(self.source, "dropped", 0),
        )


def _reading_text(value: Any) -> str:
    """A reading as people read it: its fields by name, times as texts.

    >>> _reading_text({"x": 1.5, "place": "hall"})
    'x = 1.5, place = hall'
    """
    if isinstance(value, Mapping):
        value = ", ".join(f"{name} = {one}" for name, one in value.items())
    return str(value)[:_SHOWN]
