"""How numbers and texts represent instants: counted since 1970 in a unit, or by a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

from nilometer.errors import InputError
from nilometer.model.time import EARLIEST, LATEST
from nilometer.model.time_patterns import TimePattern

_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_YEAR: Final = 366 * 86_400_000_000
_SHOWN: Final = 60


class EpochUnit(StrEnum):
    """The unit of a number since 1970."""

    SECONDS = "s"
    MILLIS = "ms"
    MICROS = "us"
    NANOS = "ns"

    @property
    def micros(self) -> Fraction:
        """How many microseconds one unit is."""
        return _MICROS[self]

    @property
    def noun(self) -> str:
        return _NOUNS[self]


_MICROS: Final = {
    EpochUnit.SECONDS: Fraction(1_000_000),
    EpochUnit.MILLIS: Fraction(1_000),
    EpochUnit.MICROS: Fraction(1),
    EpochUnit.NANOS: Fraction(1, 1_000),
}
_NOUNS: Final = {
    EpochUnit.SECONDS: "seconds",
    EpochUnit.MILLIS: "milliseconds",
    EpochUnit.MICROS: "microseconds",
    EpochUnit.NANOS: "nanoseconds",
}


@dataclass(frozen=True)
class EpochTimes:
    """Numbers since 1970 in a unit; a text is read as ISO 8601."""

    unit: EpochUnit

    def __str__(self) -> str:
        """As written after TIMESTAMP in a declaration."""
        return f"FROM EPOCH {self.unit.name}"

    def read(self, value: object) -> int:
        """Microseconds since 1970; a ValueError says why a value is not a time.

        >>> EpochTimes(EpochUnit.MILLIS).read(1_393_263_000_000)
        1393263000000000
        """
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return read_instant(value)
        try:
            counted = count_micros(value, self.unit)
        except (OverflowError, ArithmeticError, ValueError):  # NaN and infinities
            raise ValueError("not a time") from None
        if not EARLIEST <= counted <= LATEST:
            raise ValueError(
                f"no time between 1700 and 9999 in {self.unit.noun} since 1970 ({meanings(value)})"
            )
        return counted


@dataclass(frozen=True)
class WrittenTimes:
    """Texts in a pattern such as dd-MMM-yyyy H:mm:ss, in UTC if it has no zone."""

    pattern: str

    def __post_init__(self) -> None:
        _ = self._reader  # a pattern that cannot be read is an error at once

    def __str__(self) -> str:
        """As written after TIMESTAMP in a declaration."""
        quoted = self.pattern.replace("\\", "\\\\").replace("'", "\\'")
        return f"FORMAT '{quoted}'"

    def read(self, value: object) -> int:
        """Microseconds since 1970; a ValueError says why a value is not a time.

        >>> WrittenTimes("dd-MMM-yyyy H:mm:ss").read("24-Feb-2014 9:30:00")
        1393234200000000
        """
        if isinstance(value, str):
            return _in_range(self._reader.read(value))
        if isinstance(value, datetime):
            return read_instant(value)
        raise ValueError(f"not a text of the form {self.pattern}")

    @cached_property
    def _reader(self) -> TimePattern:
        return TimePattern(self.pattern)


TimeForm: TypeAlias = EpochTimes | WrittenTimes


def read_instant(value: object) -> int:
    """Microseconds since 1970 of a datetime or of ISO 8601 text, in UTC if it has no zone."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("not an ISO 8601 time") from None
    if not isinstance(value, datetime):
        raise ValueError("not a time")
    return micros_of(value)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970; in UTC if there is no zone."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _1970) // _MICROSECOND


def count_micros(number: float | Decimal, unit: EpochUnit) -> int:
    """A number since 1970 in microseconds: rounded to the nearest, nanoseconds truncated."""
    if unit is EpochUnit.NANOS:
        return int(Fraction(number) * unit.micros // 1)
    if isinstance(number, int):
        return number * int(unit.micros)
    return round(number * int(unit.micros))


def meanings(number: float | Decimal) -> str:
    """The dates that a number since 1970 would mean in each unit, in words.

    >>> meanings(1393263000)
    '1393263000 would be 2014-02-24 as seconds, 1970-01-17 as milliseconds'
    >>> meanings(5)
    '5 would be 1970-01-01 in any unit'
    """
    dates = []
    for unit in EpochUnit:
        try:
            counted = count_micros(number, unit)
        except (OverflowError, ArithmeticError, ValueError):  # NaN and infinities
            return f"{number} is not a time in any unit"
        if not EARLIEST <= counted <= LATEST:
            continue
        dates.append(f"{_day(counted)} as {unit.noun}")
        if abs(counted) < _YEAR:
            break
    if not dates:
        return f"{number} is not a time in any unit"
    if len(dates) == 1 and abs(count_micros(number, EpochUnit.SECONDS)) < _YEAR:
        return f"{number} would be {dates[0].split()[0]} in any unit"
    return f"{str(number)[:_SHOWN]} would be {', '.join(dates)}"


def read_unit(text: str) -> EpochUnit:
    """A unit by its name in options: s, ms, us, ns."""
    try:
        return EpochUnit(text.strip().lower())
    except ValueError:
        raise InputError(
            f"numbers cannot count {text.strip() or 'nothing'} since 1970",
            hint="write one of " + ", ".join(EpochUnit),
        ) from None


def _in_range(micros: int) -> int:
    if not EARLIEST <= micros <= LATEST:
        raise ValueError("no time between 1700 and 9999")
    return micros


def _day(micros: int) -> str:
    return (_1970 + timedelta(microseconds=micros)).strftime("%Y-%m-%d")
