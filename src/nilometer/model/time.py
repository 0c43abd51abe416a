"""Time as integer microseconds: durations read from text, instants shown as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from nilometer.errors import DurationError, InputError

Duration: TypeAlias = str | timedelta
"""What a user may write for a length of time: "10s", "1 HOUR", timedelta(seconds=10)."""

EARLIEST: Final = -8_520_336_000_000_000
"""1700-01-01 00:00:00 UTC: what has always held begins here, and no event is older."""

LATEST: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999: no event is later."""

FOREVER: Final = 1 << 62
"""Later than every instant, and longer than every duration: a bound that never binds."""

_LONGEST: Final = 1000 * 366 * 86_400_000_000

_UNITS: Final[dict[str, int]] = {
    name: microseconds
    for names, microseconds in (
        (("us", "µs", "microsecond", "microseconds"), 1),
        (("ms", "millisecond", "milliseconds"), 1_000),
        (("s", "sec", "secs", "second", "seconds"), 1_000_000),
        (("m", "min", "mins", "minute", "minutes"), 60_000_000),
        (("h", "hr", "hrs", "hour", "hours"), 3_600_000_000),
        (("d", "day", "days"), 86_400_000_000),
        (("w", "week", "weeks"), 604_800_000_000),
    )
    for name in names
}
_PART: Final = re.compile(
    r"\s*'?\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*'?\s*([a-zµ]+)\s*", re.IGNORECASE
)
_EXAMPLES: Final = "write a number and a unit, such as '10s', '0.8 seconds', '5 min' or '1h 30m'"


def is_time_unit(word: str) -> bool:
    """Whether a word is a unit of time, in any case.

    >>> is_time_unit("Hours"), is_time_unit("month")
    (True, False)
    """
    return word.lower() in _UNITS


def parse_duration(duration: Duration) -> int:
    """The length in microseconds of a duration that must not be negative.

    >>> parse_duration("1h 30m"), parse_duration("INTERVAL '5' SECOND"), parse_duration("0.8 S")
    (5400000000, 5000000, 800000)
    """
    length = parse_signed_duration(duration)
    if length < 0:
        raise DurationError(
            "a window cannot have a negative length",
            detail=f"got {duration!r}",
            hint="for a lower and an upper bound use nm.between(A, B, '-2s', '5s')",
        )
    return length


def parse_signed_duration(duration: Duration) -> int:
    """The length in microseconds, negative if the text begins with a minus sign.

    >>> parse_signed_duration("-2s"), parse_signed_duration(timedelta(milliseconds=3))
    (-2000000, 3000)
    """
    if isinstance(duration, timedelta):
        length = duration // timedelta(microseconds=1)
    elif isinstance(duration, str):
        length = _parse_text(duration)
    else:
        raise DurationError(
            "a duration must be text or a timedelta",
            detail=f"got {duration!r} of type {type(duration).__name__}",
            hint=_EXAMPLES,
        )
    if abs(length) > _LONGEST:
        raise DurationError(
            "a duration may not exceed 1000 years", detail=f"got {duration!r}", hint=_EXAMPLES
        )
    return length


def _parse_text(text: str) -> int:
    rest = text.strip()
    if rest[:8].upper() == "INTERVAL":
        rest = rest[8:].strip()
    negative = rest.startswith(("-", "'-"))
    if negative:
        rest = rest.replace("-", "", 1)
    total, position = Decimal(0), 0
    while position < len(rest):
        part = _PART.match(rest, position)
        unit = _UNITS.get(part[2].lower()) if part else None
        if part is None or unit is None:
            raise DurationError("cannot read a duration", detail=f"got {text!r}", hint=_EXAMPLES)
        total += Decimal(part[1]) * unit
        position = part.end()
    if not rest:
        raise DurationError("cannot read a duration", detail=f"got {text!r}", hint=_EXAMPLES)
    if total != total.to_integral_value():
        raise DurationError(
            "a duration must be a whole number of microseconds", detail=f"got {text!r}"
        )
    return -int(total) if negative else int(total)


def format_duration(microseconds: int) -> str:
    """The shortest exact text of a duration.

    >>> format_duration(90_000_000), format_duration(-800_000), format_duration(0)
    ('90s', '-800ms', '0s')
    """
    for unit, size in (("s", 1_000_000), ("ms", 1_000), ("us", 1)):
        if microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    raise AssertionError("every integer is a multiple of one")


def duration_words(microseconds: int) -> str:
    """A duration as people write it, exact, in a form that statements accept.

    >>> duration_words(86_400_000_000), duration_words(5_400_000_000), duration_words(1_500_000)
    ('1 day', '90 minutes', '1500 ms')
    """
    for unit in ("day", "hour", "minute", "second"):
        many, rest = divmod(microseconds, _UNITS[unit])
        if not rest:
            return f"{many} {unit}{'' if many == 1 else 's'}"
    many, rest = divmod(microseconds, _UNITS["ms"])
    return f"{many} ms" if not rest else f"{microseconds} us"


def format_instant(microseconds: int) -> str:
    """An instant as text in UTC, to the microsecond.

    >>> format_instant(0)
    '1970-01-01 00:00:00.000000'
    """
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return instant.strftime("%Y-%m-%d %H:%M:%S.%f")


def read_instant(at: str | datetime) -> int:
    """An instant in microseconds since 1970; text or a datetime, in UTC unless it has a zone.

    >>> read_instant("1970-01-01 00:00:01.5")
    1500000
    """
    try:
        instant = at if isinstance(at, datetime) else datetime.fromisoformat(at.strip())
    except (AttributeError, ValueError):
        raise InputError(
            "cannot read an instant",
            detail=f"got {at!r}",
            hint="write it as '2026-01-01 12:00:00.000000' (UTC), or give a datetime",
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
