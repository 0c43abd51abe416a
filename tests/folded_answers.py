"""Changelogs as rows that Spark has returned, folded to the answer at an instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.sql_files import spell_rows

Row = tuple[Any, ...]
SINCE_EVER = datetime(1700, 1, 1, tzinfo=UTC)
"""The time of what holds before anything has come."""


@dataclass(frozen=True)
class Change:
    row: Row
    time: datetime
    diff: int


def read_changes(rows: Iterable[Row]) -> list[Change]:
    """Rows that end with _time and _diff, in time order."""
    changes = [Change(row[:-2], in_utc(row[-2]), row[-1]) for row in rows]
    return sorted(changes, key=lambda change: change.time)


def in_utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def faults(changes: Sequence[Change]) -> Iterator[str]:
    """Changes that no changelog may have: empty ones, or several of one row at one instant."""
    seen = Counter((spell_rows([change.row])[0], change.time) for change in changes)
    for (row, time), count in seen.items():
        if count > 1:
            yield f"{count} changes of {row} at {time}"
    for change in changes:
        if change.diff == 0:
            yield f"a change of nothing: {change}"


def fold(changes: Sequence[Change], at: datetime) -> list[Row]:
    """The rows that hold at an instant; a row retracted more often than emitted is an error."""
    rows: dict[str, Row] = {}
    copies: Counter[str] = Counter()
    for change in changes:
        if change.time <= at:
            spelled = spell_rows([change.row])[0]
            rows[spelled] = change.row
            copies[spelled] += change.diff
    gone = [row for row, count in copies.items() if count < 0]
    if gone:
        raise AssertionError(f"at {at} there are less than no copies of {gone}")
    return [rounded(rows[row]) for row in copies.elements()]


def rounded(row: Iterable[Any]) -> Row:
    """A row with floats rounded to nine digits: sums may be added up in any order."""
    return tuple(
        float(f"{value:.9g}") + 0.0 if isinstance(value, float) else value for value in row
    )
