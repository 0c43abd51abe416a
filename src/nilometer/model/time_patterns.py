"""Instants from texts in a pattern; patterns are Spark's, such as dd-MMM-yyyy H:mm:ss."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import groupby
from typing import Final

from nilometer.errors import InputError

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_HINT: Final = (
    "it is made of yyyy or yy, M, MM, MMM or MMMM, d or dd, H or HH (0 to 23) or h or hh and a "
    "(AM, PM), m or mm, s or ss, S for digits of a second, and X or XXX for the zone (Z, +02:00)"
)
_ZONE: Final = r"Z|[+-]\d\d(?::?\d\d)?"
_PARTS: Final = {
    "yyyy": ("year", r"\d{4}"),
    "y": ("year", r"\d{4}"),
    "yy": ("short_year", r"\d\d"),
    "MM": ("month", r"\d\d"),
    "M": ("month", r"\d\d?"),
    "MMM": ("short_month", "|".join(name[:3] for name in _MONTHS)),
    "MMMM": ("long_month", "|".join(_MONTHS)),
    "dd": ("day", r"\d\d"),
    "d": ("day", r"\d\d?"),
    "HH": ("hour", r"\d\d"),
    "H": ("hour", r"\d\d?"),
    "hh": ("half_hour", r"\d\d"),
    "h": ("half_hour", r"\d\d?"),
    "a": ("half", "am|pm"),
    "mm": ("minute", r"\d\d"),
    "m": ("minute", r"\d\d?"),
    "ss": ("second", r"\d\d"),
    "s": ("second", r"\d\d?"),
    **{"S" * digits: ("fraction", rf"\d{{1,{digits}}}") for digits in range(1, 7)},
    **dict.fromkeys(("X", "XX", "XXX"), ("zone", _ZONE)),
}
_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TimePattern:
    """A pattern, parsed once for many texts."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._parts: set[str] = set()
        written = "".join(self._token(token) for token in _tokens(pattern))
        self._require_whole()
        self._regex = re.compile(written, re.IGNORECASE | re.ASCII)

    def read(self, text: str) -> int:
        """The microseconds since 1970 of a text; raises ValueError if it does not fit."""
        match = self._regex.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not a text of the form {self._pattern}")
        parts = match.groupdict()
        moment = datetime(
            _year(parts),
            _month(parts),
            int(parts["day"]),
            _hour(parts),
            int(parts.get("minute") or 0),
            int(parts.get("second") or 0),
            int((parts.get("fraction") or "").ljust(6, "0")),
            _zone(parts.get("zone")),
        )
        return (moment - _1970) // timedelta(microseconds=1)

    def _token(self, token: str) -> str:
        """A token of the pattern as part of a regular expression."""
        if token.startswith("'"):
            return re.escape("'" if token == "''" else token[1:-1].replace("''", "'"))
        if not (token[0].isascii() and token[0].isalpha()):
            if token[0] in "[]#{}":
                raise self._refusal(f"{token[0]} cannot be used in it")
            return re.escape(token)
        if token not in _PARTS:
            raise self._refusal(f"{token} cannot be used in it")
        name, expression = _PARTS[token]
        if name in self._parts:
            raise self._refusal(f"{token} repeats a part that is already there")
        self._parts.add(name)
        return f"(?P<{name}>{expression})"

    def _require_whole(self) -> None:
        """Refuse a pattern that does not determine an instant."""
        for what, names in (
            ("year", {"year", "short_year"}),
            ("month", {"month", "short_month", "long_month"}),
            ("day", {"day"}),
            ("hour", {"hour", "half_hour"}),
        ):
            is_optional = what == "hour" and not self._parts & {"minute", "second", "half"}
            if len(self._parts & names) != 1 and not is_optional:
                raise self._refusal(f"it has not exactly one {what}")
        if ("half_hour" in self._parts) != ("half" in self._parts):
            raise self._refusal("h and a (AM, PM) go together")

    def _refusal(self, why: str) -> InputError:
        return InputError(
            f"cannot read times by the pattern {self._pattern!r}", detail=why, hint=_HINT
        )


def _tokens(pattern: str) -> list[str]:
    """The pattern's runs of one letter, 'quoted' texts, and other single characters."""
    tokens: list[str] = []
    for piece in re.split(r"('(?:[^']|'')*')", pattern):
        if piece.startswith("'") and piece.endswith("'") and len(piece) > 1:
            tokens.append(piece)
        elif "'" in piece:
            raise InputError(
                f"cannot read times by the pattern {pattern!r}", detail="a quote is not closed"
            )
        else:
            tokens += ["".join(run) for _, run in groupby(piece)]
    return tokens


def _year(parts: dict[str, str | None]) -> int:
    short = parts.get("short_year")
    return int(parts.get("year") or 0) if short is None else 2000 + int(short)


def _month(parts: dict[str, str | None]) -> int:
    named = parts.get("short_month") or parts.get("long_month")
    if named is None:
        return int(parts["month"] or 0)
    return [name[:3] for name in _MONTHS].index(named[:3].lower()) + 1


def _hour(parts: dict[str, str | None]) -> int:
    half = parts.get("half_hour")
    if half is None:
        return int(parts.get("hour") or 0)
    if not 1 <= int(half) <= 12:
        raise ValueError(f"there is no hour {half} AM or PM")
    return int(half) % 12 + (12 if (parts["half"] or "").lower() == "pm" else 0)


def _zone(text: str | None) -> tzinfo:
    if text is None or text in "Zz":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-away if text[0] == "-" else away)
