"""Windows that divide time: tumbling, hopping, calendar and session windows.

A window includes its start and excludes its end: both are instants in microseconds. Tumbling and
hopping windows are counted from 1970-01-01 00:00 UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from nilometer.model.time import format_duration

WINDOW_START = "window_start"
WINDOW_END = "window_end"
WINDOW_COLUMNS = (WINDOW_START, WINDOW_END)
RESOLUTION = 1_000
"""Lengths of windows are multiples of this many microseconds."""
MOST_OVERLAPS = 10_000
"""The maximum number of hopping windows that a row may be in."""


class CalendarUnit(StrEnum):
    """Calendar units, whose lengths differ; weeks begin on Mondays."""

    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class HoppingWindows:
    """Windows of one length that start at a fixed interval; they tumble if both are the same."""

    size: int
    slide: int
    offset: int = 0

    def __str__(self) -> str:
        moved = f", moved by {format_duration(self.offset)}" if self.offset else ""
        if self.slide == self.size:
            return f"windows of {format_duration(self.size)}{moved}"
        every = format_duration(self.slide)
        return f"windows of {format_duration(self.size)}, one every {every}{moved}"


@dataclass(frozen=True, slots=True)
class CalendarWindows:
    """The weeks, months, quarters or years of the calendar, in UTC."""

    unit: CalendarUnit

    def __str__(self) -> str:
        return f"windows of a {self.unit}"


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Rows each of which comes no later than the gap after the one before.

    A session ends when the gap has passed after its last row.
    """

    gap: int

    def __str__(self) -> str:
        return f"sessions, which end after a gap of {format_duration(self.gap)}"


@dataclass(frozen=True, slots=True)
class InstantWindows:
    """Every instant is a window: rows meet what does not change, and none of them is kept."""

    def __str__(self) -> str:
        return "windows of an instant"


TimeWindows: TypeAlias = HoppingWindows | CalendarWindows | SessionWindows | InstantWindows
