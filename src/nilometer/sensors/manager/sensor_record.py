"""What is known about one sensor while it is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from nilometer.errors import in_one_line
from nilometer.model.secrets import shown_address, shown_text
from nilometer.sensors.manager.arrivals import Gaps
from nilometer.sensors.manager.kept_counts import SensorCounts
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
    gaps: Gaps = field(default_factory=Gaps)
    """When its readings arrived, from which its expected interval is learned."""
    listened_since: int = 0
    """Since when it could be received."""
    silent_since: int | None = None
    """When it last sent something, if longer ago than expected; None: it is not silent."""
    expected: int | None = None
    """Its expected interval, if known."""
    backlog: int = 0
    """Readings that the other side had kept, stored with their time of arrival."""
    rate: float = 0.0
    duplicates: int = 0
    """Counts of earlier objects of the stream type, like those below."""
    lost: int = 0
    """Readings that those objects had no room for."""
    source: Any = None
    """The stream type's object, which keeps its own counts of duplicates and losses."""
    _counted: int = field(default=0, repr=False)

    def use(self, source: Any) -> None:
        """Count with another object of the stream type from now on, keeping earlier counts."""
        self.duplicates += getattr(self.source, "duplicates", 0)
        self.lost += getattr(self.source, "dropped", 0)
        self.source = source

    def go_on(self, before: SensorCounts) -> None:
        """Continue from earlier counts."""
        for one in fields(SensorCounts):
            setattr(self, one.name, getattr(before, one.name))
        self._counted = self.readings

    def counts(self) -> SensorCounts:
        """The counts to continue from later."""
        status = self.status(0)
        return SensorCounts(**{one.name: getattr(status, one.name) for one in fields(SensorCounts)})

    def to(self, state: SensorState, now: int) -> None:
        """Change the state of the sensor."""
        if state != self.state or not self.since:
            self.state, self.since = state, now

    def note_error(self, error: BaseException | str) -> None:
        self.errors += 1
        text = error if isinstance(error, str) else in_one_line(error)
        self.last_error = shown_text(text)[:_SHOWN]

    def seen(self, value: Any, time: int, arrived: int) -> None:
        """Note a reading that will be stored."""
        self.last_value, self.last_time, self.last_arrival = value, time, arrived
        self.gaps.hear(arrived)

    def note_rate(self, seconds: float) -> None:
        """Smooth the rate; called once in this many seconds."""
        recent = (self.readings - self._counted) / seconds
        self.rate += (recent - self.rate) * (_SMOOTHING if self._counted else 1.0)
        self._counted = self.readings

    def status(self, now: int) -> SensorStatus:
        """A snapshot of the present state."""
        delay = None
        if self.last_arrival is not None and self.last_time is not None:
            delay = self.last_arrival - self.last_time
        is_silent = self.silent_since is not None and self.state is SensorState.CONNECTED
        return SensorStatus(
            stream=self.stream,
            number=self.number,
            sensor=self.name,
            address=shown_address(self.address),
            state=SensorState.SILENT if is_silent else self.state,
            since=self.since if not is_silent else self.silent_since or self.since,
            readings=self.readings,
            rate=round(self.rate, 3),
            last_value=None if self.last_value is None else _reading_text(self.last_value),
            last_time=self.last_time,
            last_arrival=self.last_arrival,
            delay=delay,
            lag=None if self.last_time is None else max(0, now - self.last_time),
            expected=self.expected,
            silent_since=self.silent_since,
            errors=self.errors,
            last_error=None if self.last_error is None else shown_text(self.last_error),
            dead_letters=self.dead_letters,
            duplicates=self.duplicates + getattr(self.source, "duplicates", 0),
            dropped=self.dropped + self.lost + getattr(self.source, "dropped", 0),
            backlog=self.backlog,
            behind=getattr(self.source, "behind", None),
        )


def _reading_text(value: Any) -> str:
    """A reading as readable text: its fields by name, times as text.

    >>> _reading_text({"x": 1.5, "place": "hall"})
    'x = 1.5, place = hall'
    """
    if isinstance(value, Mapping):
        value = ", ".join(f"{name} = {one}" for name, one in value.items())
    return str(value)[:_SHOWN]
