"""Instants, durations and amounts in readable form."""

from __future__ import annotations

import re
from typing import Final

_SECOND: Final = 1_000_000
_FRACTION: Final = re.compile(r"(?<![\w:.-])-?\d{1,15}\.\d{5,20}(?:[eE][+-]?\d{1,3})?(?![\w.])")
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*(?:\+00:00|Z)")
_SPANS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def span_text(micros: int) -> str:
    """An approximate duration.

    >>> span_text(1_500_000), span_text(90_000_000), span_text(90_000_000_000)
    ('1.5 s', '1.5 min', '1.0 d')
    """
    seconds = micros / _SECOND
    for length, unit in _SPANS:
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def count_text(count: float) -> str:
    """A count, with spaces between thousands.

    >>> count_text(1234567), count_text(2.54)
    ('1 234 567', '2.5')
    """
    digits = 1 if abs(count) < 100 and count != int(count) else 0
    return f"{count:,.{digits}f}".replace(",", " ")


def few_digits(text: str) -> str:
    """A text with at most six digits in fractional numbers, and milliseconds in instants.

    >>> few_digits("temperature = 15.50961661122691, at = 2026-01-02T03:04:05.123456Z")
    'temperature = 15.5096, at = 2026-01-02 03:04:05.123 UTC'
    """
    shorter = _FRACTION.sub(lambda match: f"{float(match[0]):.6g}", text)
    return _INSTANT.sub(r"\1 \2 UTC", shorter)
