"""Which time windows rows are in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.model.time_windows import (
    CalendarUnit,
    CalendarWindows,
    HoppingWindows,
    InstantWindows,
)

_DAY = 86_400_000_000
_MONTHS = {CalendarUnit.MONTH: 1, CalendarUnit.QUARTER: 3, CalendarUnit.YEAR: 12}
_FIRST_MONDAY = 4 * _DAY  # 1970-01-05


@dataclass(frozen=True, slots=True)
class CutRows:
    """Rows and the windows that they are in: a row appears once for each."""

    rows: Int64s
    starts: Int64s
    ends: Int64s


def cut_time(times: Int64s, windows: HoppingWindows | CalendarWindows | InstantWindows) -> CutRows:
    """The windows of rows of these times, by row and start."""
    rows = np.arange(len(times))
    if isinstance(windows, HoppingWindows):
        if windows.slide != windows.size:
            return _hop(times, windows)
        starts = times - (times - windows.offset) % windows.size
        return CutRows(rows, starts, starts + windows.size)
    if isinstance(windows, InstantWindows):
        return CutRows(rows, times, times)
    if windows.unit is CalendarUnit.WEEK:
        starts = times - (times - _FIRST_MONDAY) % (7 * _DAY)
        return CutRows(rows, starts, starts + 7 * _DAY)
    length = _MONTHS[windows.unit]
    months = times.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    first = months - months % length
    return CutRows(rows, _start_of_month(first), _start_of_month(first + length))


def _start_of_month(months: Int64s) -> Int64s:
    return months.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)


def _hop(times: Int64s, windows: HoppingWindows) -> CutRows:
    since = times - windows.offset
    last = since - since % windows.slide
    """The start of the latest window that each row is in, if it is in any."""
    overlaps = np.maximum(0, -(-(last + windows.size - since) // windows.slide))
    rows = np.repeat(np.arange(len(times)), overlaps)
    before = np.cumsum(overlaps) - overlaps
    number = overlaps[rows] - 1 - (np.arange(len(rows)) - before[rows])
    starts = last[rows] - number * windows.slide + windows.offset
    return CutRows(rows, starts, starts + windows.size)
