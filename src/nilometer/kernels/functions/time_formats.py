"""Spark's patterns for times, such as yyyy-MM-dd HH:mm:ss.SSS: the letters in common use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.local_times import DAY, civil
from nilometer.kernels.read_texts import day_number

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SECOND: Final = 1_000_000
_PART: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z'\[\]{}#]")
_MOST_LETTERS: Final = 100


@dataclass(frozen=True)
class _Moment:
    """An instant in its zone, in parts."""

    year: int
    month: int
    day: int
    day_number: int
    micros: int
    """Of the day."""
    offset: int
    """How far ahead the local clock is, in seconds."""

    @property
    def hour(self) -> int:
        return self.micros // (3600 * _SECOND)


def _year(moment: _Moment, length: int) -> str:
    year = moment.year if moment.year > 0 else 1 - moment.year
    if length == 2:
        return f"{year % 100:02}"
    if year > 9999 and length == 4:
        return f"+{year}"
    return f"{year:0{length}}"


def _fraction(moment: _Moment, length: int) -> str:
    return f"{moment.micros % _SECOND:06}000"[:length]


def _offset(moment: _Moment, _: int) -> str:
    """Hours and minutes only: the seconds that some historical zones had are not written."""
    if moment.offset == 0:
        return "Z"
    sign, size = ("+" if moment.offset > 0 else "-"), abs(moment.offset)
    return f"{sign}{size // 3600:02}:{size // 60 % 60:02}"


def _number(compute: Callable[[_Moment], int]) -> Callable[[_Moment, int], str]:
    return lambda moment, length: f"{compute(moment):0{length}}"


def _named(
    names: tuple[str, ...], place: Callable[[_Moment], int]
) -> Callable[[_Moment, int], str]:
    return lambda moment, length: names[place(moment)][: None if length == 4 else 3]


def _month(moment: _Moment, length: int) -> str:
    if length <= 2:
        return f"{moment.month:0{length}}"
    return MONTHS[moment.month - 1][: None if length == 4 else 3]


def _day_of_year(moment: _Moment) -> int:
    first = day_number(moment.year, 1, 1)
    assert first is not None
    return moment.day_number - first + 1


_WRITERS: Final[dict[str, tuple[tuple[int, ...], Callable[[_Moment, int], str]]]] = {
    "y": ((1, 2, 4), _year),
    "M": ((1, 2, 3, 4), _month),
    "d": ((1, 2), _number(lambda moment: moment.day)),
    "D": ((1, 3), _number(_day_of_year)),
    "E": ((1, 2, 3, 4), _named(DAYS, lambda moment: (moment.day_number + 3) % 7)),
    "a": ((1,), lambda moment, _: "AM" if moment.hour < 12 else "PM"),
    "H": ((1, 2), _number(lambda moment: moment.hour)),
    "h": ((1, 2), _number(lambda moment: (moment.hour + 11) % 12 + 1)),
    "k": ((1, 2), _number(lambda moment: (moment.hour + 23) % 24 + 1)),
    "K": ((1, 2), _number(lambda moment: moment.hour % 12)),
    "m": ((1, 2), _number(lambda moment: moment.micros // (60 * _SECOND) % 60)),
    "s": ((1, 2), _number(lambda moment: moment.micros // _SECOND % 60)),
    "S": (tuple(range(1, 10)), _fraction),
    "X": ((3,), _offset),
}
"""How often each letter may occur in a row, and what is written for it."""

_SHORT: Final = "|".join(name[:3] for name in MONTHS)
_READERS: Final = {
    "yyyy": r"(?P<y>[0-9]{4}|\+[0-9]{5,6})",
    "M": r"(?P<M>[0-9]{1,2})",
    "MM": r"(?P<M>[0-9]{2})",
    "MMM": f"(?P<MMM>{_SHORT})",
    "d": r"(?P<d>[0-9]{1,2})",
    "dd": r"(?P<d>[0-9]{2})",
    "H": r"(?P<H>[0-9]{1,2})",
    "HH": r"(?P<H>[0-9]{2})",
    "m": r"(?P<m>[0-9]{1,2})",
    "mm": r"(?P<m>[0-9]{2})",
    "s": r"(?P<s>[0-9]{1,2})",
    "ss": r"(?P<s>[0-9]{2})",
}
"""The regular expressions that read letters."""


@dataclass(frozen=True)
class TimeFormat:
    """A pattern in parts: letters, and the text between them (with a quote in front)."""

    pattern: str
    parts: tuple[str, ...]

    def write(self, micros: Int64s, local: Int64s) -> list[str]:
        """Instants, given with their local times, as strings."""
        days = local // DAY
        columns = (*civil(days), days, local % DAY, (local - micros) // _SECOND)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [self._write(_Moment(*row)) for row in rows]

    def _write(self, moment: _Moment) -> str:
        return "".join(
            part[1:] if part[0] == "'" else _WRITERS[part[0]][1](moment, len(part))
            for part in self.parts
        )

    def require_readable(self) -> None:
        """Refuse a pattern that can only be used to write times here, not to read them."""
        letters = [part for part in self.parts if part[0] != "'"]
        plain = [part for part in letters if part[0] != "S"]
        unreadable = [part for part in plain if part not in _READERS]
        touching = any(
            len(one) == 1 and two[0] != "'"
            for one, two in zip(self.parts, self.parts[1:], strict=False)
            if one[0] not in "'S"
        )
        twice = len({part[0] for part in letters}) < len(letters)
        if unreadable or touching or twice:
            raise UnavailableError(
                f"reading times by the pattern {self.pattern!r} is not available here",
                hint="yyyy, MM, MMM, dd, HH, mm, ss and SSS can be read, once each",
            )

    def read(self, text: str) -> int:
        """The local time in a string, in microseconds since local 1970."""
        match = _regex(self).fullmatch(text)
        local = None if match is None else _local(match)
        if local is None:
            raise PredicateError(
                f"cannot read {text[:40]!r} by the pattern {self.pattern!r}",
                hint="try_to_timestamp(x, pattern) returns NULL instead",
            )
        return local


def _local(match: re.Match[str]) -> int | None:
    parts = match.groupdict()
    named = parts.get("MMM")
    month = (
        _SHORT.lower().split("|").index(named.lower()) + 1 if named else int(parts.get("M") or 1)
    )
    days = day_number(int(parts.get("y") or 1970), month, int(parts.get("d") or 1))
    hour, minute, second = (int(parts.get(letter) or 0) for letter in "Hms")
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    micros = int(f"{parts.get('S') or '0':0<6}"[:6])
    return days * DAY + ((hour * 60 + minute) * 60 + second) * _SECOND + micros


@lru_cache(maxsize=64)
def _regex(one: TimeFormat) -> re.Pattern[str]:
    texts = [
        re.escape(part[1:])
        if part[0] == "'"
        else f"(?P<S>[0-9]{{1,{len(part)}}})"
        if part[0] == "S"
        else _READERS[part]
        for part in one.parts
    ]
    return re.compile("".join(texts), re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=256)
def read_format(pattern: object) -> TimeFormat:
    """The pattern in parts; an UnavailableError for unsupported letters."""
    if not isinstance(pattern, str) or len(pattern) > _MOST_LETTERS:
        raise UnavailableError("a time pattern may have at most 100 characters")
    parts, place = [], 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            raise _refusal(pattern, pattern[place])
        place = part.end()
        if part[1] is not None:
            parts.append("'" + (part[1].replace("''", "'") or "'"))
        elif part[2] is None:
            parts.append("'" + part[0])
        else:
            lengths, _ = _WRITERS.get(part[2], ((), None))
            if len(part[0]) not in lengths:
                raise _refusal(pattern, part[0])
            parts.append(part[0])
    return TimeFormat(pattern, tuple(parts))


def _refusal(pattern: str, part: str) -> UnavailableError:
    return UnavailableError(
        f"the pattern {pattern!r} is not available here",
        detail=f"it has {part}",
        hint="yyyy, yy, M, MM, MMM, MMMM, d, dd, D, E, EEEE, H, HH, h, hh, m, mm, s, ss, S to "
        "SSSSSSSSS, a, XXX and texts in single quotes are supported here",
    )
