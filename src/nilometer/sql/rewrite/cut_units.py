"""The time windows that date_trunc cuts, by its unit."""

from __future__ import annotations

from typing import Final

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
