"""The state of sensors and streams: snapshots, and a file with them for other processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class SensorState(StrEnum):
    """The state of a sensor."""

    OPENING = "opening"
    CONNECTED = "connected"
    SILENT = "silent"
    """Connected, but quiet for longer than expected."""
    WAITING = "waiting"
    """An attempt has failed; another one will follow."""
    ENDED = "ended"
    FAILED = "failed"
    """Closed for good, because its log was full and its readings may not be dropped."""


@dataclass(frozen=True)
class SensorStatus:
    """One sensor that is wanted; instants and durations are microseconds, `rate` is per second."""

    stream: str
    number: int
    sensor: str
    address: str
    state: SensorState
    since: int
    readings: int
    """Rows stored so far; like the other counts, it continues after a restart."""
    rate: float
    last_value: str | None
    last_time: int | None
    last_arrival: int | None
    delay: int | None
    """How long after its time the last reading arrived."""
    lag: int | None
    """The age of its last reading's time when the status was taken."""
    expected: int | None
    """Its expected interval: declared, learned, or that of others in its table."""
    silent_since: int | None
    """When it last sent something, if longer ago than expected, whatever its state."""
    errors: int
    last_error: str | None
    dead_letters: int
    duplicates: int
    dropped: int
    backlog: int
    """Readings that the other side had kept, stored with their time of arrival."""
    behind: int | None = None
    """How many readings wait at the other side; None: unknown."""


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
    """How far the watermark was behind the clock when the status was taken (microseconds)."""
    held_by: str | None
    """The sensor that holds the watermark back; None: nothing does, or no single one."""
    held_since: int | None
    """Since when silence has kept the watermark from advancing; None: it does not."""
    silent: int
    """How many of its sensors are silent."""
    silent_since: int | None
    """Since when all of its sensors have been silent; None: they are not."""
    last_arrival: int | None
    """When the last reading arrived."""
    pending: int
    """Rows that wait to be appended."""
    full: bool
    """Whether the log has no room."""
    error: str | None
    """Why the last append or search for readers failed, or what is wrong with its time."""
    dead_letters: int
    dropped: int
    backlog: int
    """Readings that the other side had kept, stored with their time of arrival."""
    segments: int = 0
    """How many files hold its rows."""
    kept_rows: int = 0
    oldest: int | None = None
    """When the oldest of these files was begun."""
    rate: float = 0.0
    """Rows stored per second."""
    behind: int | None = None
    """How many readings wait at the other side, for all sensors for which this is known."""
    durability: str = "disk"
    """Where rows are when they are acknowledged: on the server's disk, or in the object store."""
    unshipped: int = 0
    """How many rows are on the server's disk, and on their way to the object store."""
    unshipped_since: int | None = None
    """When the oldest of them was appended; None: there are none."""


def write_status(
    path: Path,
    now: int,
    streams: Sequence[StreamStatus],
    sensors: Sequence[SensorStatus],
    counts: Mapping[str, Any],
    *,
    durable: bool = False,
) -> None:
    """Write everything to a file, whole or not at all.

    `counts` must continue after a restart; `durable`: survive a power failure.
    """
    content = {
        "time": now,
        "pid": os.getpid(),
        "streams": [asdict(one) for one in streams],
        "sensors": [asdict(one) for one in sensors],
        "kept": {name: asdict(one) for name, one in counts.items()},
    }
    aside = path.with_name(f"{path.name}.new")
    with aside.open("w") as file:
        file.write(json.dumps(content))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    aside.replace(path)


def read_status(path: Path) -> dict[str, Any] | None:
    """What a manager last wrote: `time`, `pid`, `streams`, `sensors`; None: nothing readable."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    whole = isinstance(content, dict) and {"time", "pid", "streams", "sensors"} <= content.keys()
    return content if whole else None
