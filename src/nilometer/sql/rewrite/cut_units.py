"""The time windows that date_trunc, casts to DATE and time_bucket cut."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import DurationError
from nilometer.model.time import parse_duration
from nilometer.model.time_windows import (
    CalendarUnit,
    CalendarWindows,
    HoppingWindows,
)

_SECOND: Final = 1_000_000
LENGTHS: Final = {
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3600 * _SECOND,
    "DAY": 86_400 * _SECOND,
    "DD": 86_400 * _SECOND,
}
_CALENDAR: Final = {
    "WEEK": CalendarUnit.WEEK,
    **dict.fromkeys(("MONTH", "MON", "MM"), CalendarUnit.MONTH),
    "QUARTER": CalendarUnit.QUARTER,
    **dict.fromkeys(("YEAR", "YYYY", "YY"), CalendarUnit.YEAR),
}


def windows_of_unit(unit: str) -> HoppingWindows | CalendarWindows | None:
    """The windows that a unit cuts the time into; None if it is no such unit."""
    unit = unit.upper()
    if unit in LENGTHS:
        return HoppingWindows(LENGTHS[unit], LENGTHS[unit])
    return CalendarWindows(_CALENDAR[unit]) if unit in _CALENDAR else None


def cut_time(key: exp.Expr) -> tuple[exp.Expr, str] | None:
    """What a key cuts, and to which unit, if it does: date_trunc, a cast to DATE, to_date."""
    if isinstance(key, exp.TimestampTrunc | exp.DateTrunc):
        return key.this, str(key.args["unit"].name.upper())
    if isinstance(key, exp.Cast) and key.is_type(exp.DType.DATE):
        return key.this, "DAY"
    is_date = isinstance(key, exp.Anonymous) and key.name.lower() == "to_date"
    return (key.expressions[0], "DAY") if is_date and len(key.expressions) == 1 else None


def bucket_of(key: exp.Expr) -> tuple[exp.Expr, int] | None:
    """The time that time_bucket(INTERVAL '5' MINUTES, ts) cuts, and the length in microseconds."""
    is_bucket = isinstance(key, exp.Anonymous) and key.name.lower() == "time_bucket"
    if not is_bucket or len(key.expressions) != 2:
        return None
    length, time = key.expressions
    if not isinstance(length, exp.Interval) or length.this is None:
        return None
    unit = length.unit.name if length.unit is not None else ""
    try:
        size = parse_duration(f"{length.this.name} {unit}")
    except DurationError:
        return None
    return (time, size) if size > 0 else None
