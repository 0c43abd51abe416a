"""How sensors and streams are doing: snapshots, and a file with them for other processes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class SensorState(StrEnum):
    """Where a sensor is."""

    OPENING = "opening"
    CONNECTED = "connected"
    WAITING = "waiting"
    """An attempt has failed; another one follows."""
    ENDED = "ended"
    FAILED = "failed"
    """Closed for good, because its log was full and its readings may not be dropped."""


@dataclass(frozen=True)
class SensorStatus:
    """One sensor that is wanted; instants and `lag` are microseconds, `rate` per second."""

    stream: str
    number: int
    sensor: str
    address: str
    state: SensorState
    since: int
    readings: int
    """Rows stored since the manager opened it."""
    rate: float
    last_value: str | None
    last_time: int | None
    last_arrival: int | None
    lag: int | None
    """How much later than its time the last reading arrived."""
    errors: int
    last_error: str | None
    dead_letters: int
    duplicates: int
    dropped: int


@dataclass(frozen=True)
class StreamStatus:
    """One stream or sensor table."""

    name: str
    sensors: int
    """How many are wanted by some reader."""
    connected: int
    readers: int
    """How many readers are alive."""
    rows: int
    """How many rows its log has ever had."""
    stored_bytes: int
    watermark: int | None
    held_by: str | None
    """The sensor that holds the watermark back."""
    pending: int
    """Rows that wait to be appended."""
    full: bool
    """Whether the log has no room."""
    error: str | None
    """Why the last append or look at its readers failed, or what is wrong with its time."""
    dead_letters: int
    dropped: int


def write_status(
    path: Path, now: int, streams: Sequence[StreamStatus], sensors: Sequence[SensorStatus]
) -> None:
    """Write all of it to a file, whole or not at all."""
    content = {
        "time": now,
        "pid": os.getpid(),
        "streams": [asdict(one) for one in streams],
        "sensors": [asdict(one) for one in sensors],
    }
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(json.dumps(content))
    aside.replace(path)


def read_status(path: Path) -> dict[str, Any] | None:
    """What a manager wrote last: `time`, `pid`, `streams`, `sensors`; None: nothing readable."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and {"time", "pid", "streams", "sensors"} <= found.keys()
    return found if whole else None
