"""The time range of a whole dashboard, as given in its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nilometer.errors import NilometerError
from nilometer.kernels.json_values import iso_time
from nilometer.model.time import EARLIEST, LATEST, format_duration, parse_duration, read_instant

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
PRESETS: Final = {
    "5m": ("5 min", 5 * _MINUTE),
    "15m": ("15 min", 15 * _MINUTE),
    "1h": ("1 h", _HOUR),
    "24h": ("24 h", _DAY),
    "7d": ("7 d", 7 * _DAY),
}
"""The presets by their words in addresses: the text that is shown, and the length."""
ALL: Final = "all"
_SHORTEST: Final = 1_000
"""The shortest range that zooming allows, in microseconds."""
_STEPS: Final[tuple[int, ...]] = (
    *(step * 10**power for power in range(6) for step in (1, 2, 5)),
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 15, 30)),
    *(step * _HOUR for step in (1, 2, 3, 6, 12)),
    _DAY,
)


@dataclass(frozen=True)
class Interval:
    """The instants from start to end, both included, in microseconds."""

    start: int | None
    """None: everything stored until the end."""
    end: int
    is_past: bool = False
    """Whether it has ended: answers are shown as they were then."""


@dataclass(frozen=True)
class TimeRange:
    """The last so many microseconds, or between two instants, or everything stored."""

    span: int | None = None
    start: int | None = None
    end: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether it moves with the clock."""
        return self.start is None

    def at(self, now: int) -> Interval:
        """The interval that it denotes at an instant."""
        if self.start is not None and self.end is not None:
            return Interval(self.start, self.end, self.end < now)
        if self.span is None:
            return Interval(None, LATEST)
        return Interval(now - self.span, now)

    @property
    def address(self) -> dict[str, str]:
        """Its parameters in an address."""
        if self.start is not None and self.end is not None:
            return {"from": iso_time(self.start), "to": iso_time(self.end)}
        if self.span is None:
            return {"range": ALL}
        presets = (name for name, (_, span) in PRESETS.items() if span == self.span)
        return {"range": next(presets, format_duration(self.span))}

    @property
    def words(self) -> str:
        """Its readable form.

        >>> TimeRange(300_000_000).words, TimeRange(start=0, end=1_500_000).words
        ('last 5 min', '1970-01-01 00:00:00 to 00:00:01.500 UTC')
        """
        if self.start is None or self.end is None:
            names = {span: words for words, span in PRESETS.values()}
            if self.span is None:
                return "all that is stored"
            return f"last {names.get(self.span, format_duration(self.span))}"
        first, last = (_short(one) for one in (self.start, self.end))
        return f"{first} to {last[11:] if last[:10] == first[:10] else last} UTC"

    def widened(self, now: int) -> TimeRange:
        """Twice as long, around the same middle, up to now."""
        interval = self.at(now)
        if interval.start is None:
            return self
        length = max(_SHORTEST, interval.end - interval.start)
        end = min(interval.end + length // 2, max(now, interval.end))
        return between(end - 2 * length, end)


def between(start: int, end: int) -> TimeRange:
    """From one instant to another, whichever is first, within the calendar."""
    first, last = sorted((start, end))
    first = min(max(first, EARLIEST), LATEST - _SHORTEST)
    return TimeRange(None, first, min(max(last, first + _SHORTEST), LATEST))


DEFAULT: Final = TimeRange(PRESETS["15m"][1])


def read_range(span: str, start: str, end: str) -> TimeRange:
    """Parse an address; invalid parts count as missing.

    >>> read_range("1h", "", "").span, read_range("x", "", "") == DEFAULT
    (3600000000, True)
    """
    try:
        if start and end:
            return between(read_instant(start), read_instant(end))
        if span == ALL:
            return TimeRange()
        return TimeRange(max(_SHORTEST, parse_duration(span))) if span else DEFAULT
    except (NilometerError, OverflowError):
        return DEFAULT


def step_for(length: int, max_steps: int) -> int:
    """The shortest usual time step of which at most this many cover `length`.

    >>> step_for(300_000_000, 250), step_for(7 * 86_400_000_000, 250)
    (2000000, 3600000000)
    """
    for step in _STEPS:
        if step * max_steps >= length:
            return step
    return -(-length // (_DAY * max_steps)) * _DAY


def _short(micros: int) -> str:
    """An instant to the second, or to the millisecond where needed."""
    text = iso_time(micros).replace("T", " ").rstrip("Z")
    return text[:19] if micros % _SECOND < _SHORTEST else text[:23]
