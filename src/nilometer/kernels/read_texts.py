"""CAST of texts as in Spark (ANSI): text that cannot be parsed is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.expression_types import type_name
from nilometer.kernels.local_times import DAY, INSTANT, days_from_civil, to_instant
from nilometer.kernels.round_values import DIGITS

_SPACE: Final = "".join(map(chr, range(33))) + "\x7f"
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?"
)
_SPECIAL: Final = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), "inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-inf"),
    "nan": "nan",
}
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_TRUTH: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_DATE: Final = re.compile(
    r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL
)
_TIMESTAMP: Final = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(.*))?)?)?)?)?",
    re.DOTALL,
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-9]{1,2}))?(?::([0-9]{2}))?")
_LAST_DAY: Final = 2**31 - 1


def read_texts(column: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """The texts of a column as values of a type."""
    read = _reader(kind, zone)

    def one(text: str | None) -> Any:
        if text is None:
            return None
        value = read(text)
        if value is None:
            raise _unreadable(text, kind)
        return value

    values = [one(text) for text in column.to_pylist()]
    if pat.is_floating(kind):  # one rounding, whatever the type
        return pa.array(values, pa.string()).cast(kind)
    if pat.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pat.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _unreadable(text: str, kind: pa.DataType) -> PredicateError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return PredicateError(
        f"cannot read {shown!r} as {type_name(kind)}",
        hint=f"try_cast(x AS {type_name(kind)}) returns NULL instead",
    )


def _reader(kind: pa.DataType, zone: str) -> Callable[[str], Any]:
    if pat.is_signed_integer(kind):
        return lambda text: _read_whole(text, kind.bit_width)
    if pat.is_floating(kind):
        return _read_float
    if pat.is_decimal(kind):
        return lambda text: _read_decimal(text, kind)
    if pat.is_boolean(kind):
        return lambda text: _TRUTH.get(text.strip(_SPACE).lower())
    if pat.is_date32(kind):
        return read_date
    assert kind == INSTANT
    return lambda text: read_timestamp(text, zone)


def _read_whole(text: str, bits: int) -> int | None:
    plain = text.strip(_SPACE)
    if not _WHOLE.fullmatch(plain) or len(plain.lstrip("+-0")) > 19:
        return None
    number = int(plain)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def _read_float(text: str) -> str | None:
    """The number as Arrow parses it."""
    plain = text.strip(_SPACE[:33])
    special = _SPECIAL.get(plain.lower())
    if special is not None:
        return special
    if _FLOAT.fullmatch(plain):
        return plain.rstrip("dDfF").lstrip("+")
    if _HEXADECIMAL.fullmatch(plain):
        try:
            return repr(float.fromhex(plain.rstrip("dDfF") if plain[-1] in "dDfF" else plain))
        except OverflowError:
            return "-inf" if plain.startswith("-") else "inf"
    return None


def _read_decimal(text: str, kind: pa.DataType) -> Decimal | None:
    plain = text.strip(_SPACE[:33])
    if not _DECIMAL.fullmatch(plain):
        return None
    number = Decimal(plain)
    if number and number.adjusted() >= kind.precision - kind.scale:
        raise PredicateError(
            f"{plain[:40]} does not fit into {type_name(kind)}",
            hint="cast it to a wider type, such as DECIMAL(38, 6) or DOUBLE",
        )
    if number.adjusted() < -kind.scale - 2:
        return Decimal((0, (0,), -kind.scale))
    rounded = number.quantize(Decimal((0, (1,), -kind.scale)), context=DIGITS)
    if rounded and rounded.adjusted() >= kind.precision - kind.scale:
        raise PredicateError(
            f"{plain[:40]} does not fit into {type_name(kind)}",
            hint="cast it to a wider type, such as DECIMAL(38, 6) or DOUBLE",
        )
    return rounded


def day_number(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None if there is no such day."""
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    if 1 <= year <= 9999:
        try:
            return date(year, month, day).toordinal() - 719163
        except ValueError:
            return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = (
        29 if leap and month == 2 else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    )
    if day > longest:
        return None
    parts = [np.array([part], np.int64) for part in (year, month, day)]
    return int(days_from_civil(*parts)[0])


def read_date(text: str) -> int | None:
    """The days since 1970 of a text; None if it is not a date."""
    match = _DATE.fullmatch(text.strip(_SPACE))
    if match is None:
        return None
    days = day_number(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    return days if days is not None and abs(days) <= _LAST_DAY else None


def read_timestamp(text: str, zone: str) -> int | None:
    """The microseconds since 1970 of a text, in this zone unless it names one; None: not a time."""
    match = _TIMESTAMP.fullmatch(text.strip(_SPACE))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, rest = match.groups()
    days = day_number(int(year), int(month or 1), int(day or 1))
    clock = [int(part or 0) for part in (hour, minute, second)]
    if days is None or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    micros = int(f"{fraction or '0':0<6}"[:6])
    local = days * DAY + ((clock[0] * 60 + clock[1]) * 60 + clock[2]) * 1_000_000 + micros
    return _in_zone(local, (rest or "").strip(" "), zone)


def _in_zone(local: int, named: str, zone: str) -> int | None:
    if not named:
        return _instant(local, zone)
    if named in ("Z", "UTC", "GMT", "UT"):
        return local
    offset = _OFFSET.fullmatch(named)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        if hours > 18 or minutes > 59 or seconds > 59 or (hours == 18 and (minutes or seconds)):
            return None
        shift = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
        return local - shift if offset[1] == "+" else local + shift
    return _instant(local, named) if is_region(named) else None


def is_region(name: str) -> bool:
    """Whether a zone is a region, such as Europe/Berlin."""
    if "/" not in name:
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _instant(local: int, zone: str) -> int | None:
    if not -(2**62) < local < 2**62:
        return None
    return int(to_instant(np.array([local], np.int64), zone)[0])
