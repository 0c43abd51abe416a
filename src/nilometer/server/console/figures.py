"""Instants, spans and amounts as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_SECOND: Final = 1_000_000
_SPANS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def clock_text(instant: int | None) -> str:
    """The time of day of an instant in microseconds, in UTC.

    >>> clock_text(1_767_225_600_250_000)
    '00:00:00'
    """
    if instant is None:
        return "—"
    return datetime.fromtimestamp(instant // _SECOND, UTC).strftime("%H:%M:%S")


def span_text(micros: int) -> str:
    """A length of time, roughly.

    >>> span_text(1_500_000), span_text(90_000_000), span_text(90_000_000_000)
    ('1.5 s', '1.5 min', '1.0 d')
    """
    seconds = micros / _SECOND
    for length, unit in _SPANS:
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def count_text(count: float) -> str:
    """A number of things, with spaces between thousands.

    >>> count_text(1234567), count_text(2.54)
    ('1 234 567', '2.5')
    """
    digits = 1 if abs(count) < 100 and count != int(count) else 0
    return f"{count:,.{digits}f}".replace(",", " ")
