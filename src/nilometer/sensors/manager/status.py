"""How sensors and streams are doing: snapshots, and a file with them for other processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class SensorState(StrEnum):
    """Where a sensor is."""

    OPENING = "opening"
    CONNECTED = "connected"
    SILENT = "silent"
    """Connected, but it has not spoken for longer than expected."""
    WAITING = "waiting"
    """An attempt has failed; another one follows."""
    ENDED = "ended"
    FAILED = "failed"
    """Closed for good, because its log was full and its readings may not be dropped."""


@dataclass(frozen=True)
class SensorStatus:
    """One sensor that is wanted; instants and lengths are microseconds, `rate` per second."""

    stream: str
    number: int
    sensor: str
    address: str
    state: SensorState
    since: int
    readings: int
    """Rows stored so far; this and the other counts go on after a restart."""
    rate: float
    last_value: str | None
    last_time: int | None
    last_arrival: int | None
    delay: int | None
    """How much later than its time the last reading arrived."""
    lag: int | None
    """How long ago the time of its last reading was when this was asked."""
    expected: int | None
    """How often it is to speak: as declared, learned, or as others of its table do."""
    silent_since: int | None
    """When it spoke last, if that is longer ago than expected, whatever its state is."""
    errors: int
    last_error: str | None
    dead_letters: int
    duplicates: int
    dropped: int
    backlog: int
    """Readings that the other side had kept, and that bear the time of their arrival."""
    behind: int | None = None
    """How many readings wait at the other side; None: that is not known."""


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
    lag: int | None
    """How far the watermark was behind the clock when this was asked (microseconds)."""
    held_by: str | None
    """The sensor that holds the watermark back; None: nothing does, or no sensor alone."""
    held_since: int | None
    """Since when silence keeps the watermark from going on; None: it does not."""
    silent: int
    """How many of its sensors are silent."""
    silent_since: int | None
    """Since when all of its sensors are silent; None: they are not."""
    last_arrival: int | None
    """When a reading arrived last."""
    pending: int
    """Rows that wait to be appended."""
    full: bool
    """Whether the log has no room."""
    error: str | None
    """Why the last append or look at its readers failed, or what is wrong with its time."""
    dead_letters: int
    dropped: int
    backlog: int
    """Readings that the other side had kept, and that bear the time of their arrival."""
    segments: int = 0
    """In how many files its rows lie."""
    kept_rows: int = 0
    oldest: int | None = None
    """When the oldest of these files was begun."""
    rate: float = 0.0
    """Rows that are stored per second."""
    behind: int | None = None
    """How many readings wait at the other side, of all sensors of which that is known."""


def write_status(
    path: Path,
    now: int,
    streams: Sequence[StreamStatus],
    sensors: Sequence[SensorStatus],
    kept: Mapping[str, Any],
    *,
    durable: bool = False,
) -> None:
    """Write all of it to a file, whole or not at all.

    `kept` is what is to go on after a restart beside it; `durable`: also after a power failure.
    """
    content = {
        "time": now,
        "pid": os.getpid(),
        "streams": [asdict(one) for one in streams],
        "sensors": [asdict(one) for one in sensors],
        "kept": {name: asdict(one) for name, one in kept.items()},
    }
    aside = path.with_name(f"{path.name}.new")
    with aside.open("w") as file:
        file.write(json.dumps(content))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    aside.replace(path)


def read_status(path: Path) -> dict[str, Any] | None:
    """What a manager wrote last: `time`, `pid`, `streams`, `sensors`; None: nothing readable."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and {"time", "pid", "streams", "sensors"} <= found.keys()
    return found if whole else None
