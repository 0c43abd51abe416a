"""Counts of sensors and streams continue after a restart: they are kept in the status file."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from nilometer.errors import LogError
from nilometer.log.layout import SENSOR
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.sensors.manager.status import read_status

_LOG: Final = logging.getLogger("nilometer.sensors")
MOST_PAST: Final = 50_000
"""Counts are kept for at most this many sensors of each stream that no reader needs now."""


@dataclass(frozen=True)
class SensorCounts:
    """The counts of a sensor, and its last reading."""

    readings: int = 0
    errors: int = 0
    dead_letters: int = 0
    duplicates: int = 0
    dropped: int = 0
    backlog: int = 0
    last_error: str | None = None
    last_value: str | None = None
    last_time: int | None = None
    last_arrival: int | None = None


@dataclass(frozen=True)
class StreamCounts:
    """The counts of a stream, and of its sensors by number."""

    log: str
    """The id of its log: a stream that was dropped and created again has another one."""
    end: dict[str, Any]
    """The log position up to which readings were counted."""
    dropped: int = 0
    sensors: Mapping[int, SensorCounts] = field(default_factory=dict)


def read_counts(path: Path | None) -> dict[str, StreamCounts]:
    """The counts by stream when the status was last written; empty if there is none."""
    status = None if path is None or not path.exists() else read_status(path)
    try:
        return {} if status is None else _counts(status)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _LOG.warning("counts start from zero again: %s cannot be read: %s", path, error)
        return {}


def _counts(status: Mapping[str, Any]) -> dict[str, StreamCounts]:
    counts = {}
    for name, stored in status.get("kept", {}).items():
        sensors = {int(number): _sensor(one) for number, one in stored["sensors"].items()}
        now = {
            int(one["number"]): _sensor(one) for one in status["sensors"] if one["stream"] == name
        }
        end, dropped = Position.from_json(stored["end"]).to_json(), int(stored["dropped"])
        counts[name] = StreamCounts(str(stored["log"]), end, dropped, {**sensors, **now})
    return counts


def count_on(before: StreamCounts, log: LogReader, end: Position, only: int | None) -> StreamCounts:
    """The same counts plus readings that were stored after the status was last written.

    `end` is that of the writer, which may have found more than was published. `only` is the number
    of a stream's only sensor; None: every row contains it.
    """
    more: Counter[int] = Counter()
    start = Position.from_json(before.end)
    if start.row >= end.row:  # nothing arrived, or a power failure has removed it
        return before
    try:
        for frame in log.read(start, end):
            # What waited in a write-ahead was counted, and came to the log afterwards.
            rows = frame.rows.slice(max(0, start.row - frame.start.row))
            if only is None:
                more.update(rows[SENSOR].to_pylist())
            else:
                more[only] += len(rows)
    except LogError:  # trimmed or damaged: the stream must continue anyway
        return before
    sensors = dict(before.sensors)
    for number, rows in more.items():
        counted = sensors.get(number, SensorCounts())
        sensors[number] = replace(counted, readings=counted.readings + rows)
    return replace(before, sensors=sensors)


def _sensor(stored: Mapping[str, Any]) -> SensorCounts:
    values = {one.name: stored[one.name] for one in fields(SensorCounts)}
    for name, value in values.items():
        is_text = name in ("last_error", "last_value")
        is_fine = isinstance(value, str if is_text else int)
        if not (is_fine or (value is None and name.startswith("last_"))):
            raise ValueError(f"{name} is {value!r}")
    return SensorCounts(**values)
