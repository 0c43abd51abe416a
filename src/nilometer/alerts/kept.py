"""The stored state of an alert: its groups, its position, and the log of its history.

The groups are stored together with what will be reported about them before it is appended to the
log; a number tells the log what it already has. So after a kill nothing is lost and nothing is
reported twice, and every line has the same id in every attempt to deliver it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa

from nilometer.alerts.rule import Group
from nilometer.errors import LogError, LogFullError
from nilometer.log.frame_format import BatchKey, encode_frame
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.location import storage_at
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.stored_json import json_bytes, read_json
from nilometer.log.writer import LogWriter

STATE_FILE: Final = "alert.json"
SILENCED: Final = "silenced"
_WRITER: Final = "alert"
_SEGMENT: Final = 1 << 20
_DISK: Final = 64 << 20
_SCHEMA: Final = pa.schema(
    [
        pa.field("time", TIMESTAMP),
        pa.field("state", pa.string()),
        pa.field("previous", pa.string()),
        pa.field("key", pa.string()),
        pa.field("value", pa.string()),
        pa.field("message", pa.string()),
        pa.field(SILENCED, pa.bool_()),
    ]
)
LAYOUT: Final = LogLayout(_SCHEMA, "time")


@dataclass(frozen=True)
class Notification:
    """One line of an alert's history."""

    time: int
    state: str
    previous: str
    key: str | None
    """The columns of PER and their values, as JSON; None without PER."""
    value: str | None
    """The columns that the conditions name, as JSON."""
    message: str
    silenced: bool
    """Whether it must not be delivered."""


@dataclass(frozen=True)
class AlertMemory:
    """Everything that an alert needs to resume."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    """By their keys."""
    place: Mapping[str, Any] | None = None
    """The position in its source."""
    number: int = 0
    """How many lines its history has had."""


def read_memory(location: str) -> AlertMemory:
    """What was last stored; empty if there is nothing."""
    return _memory(read_json(storage_at(location), STATE_FILE))


def _memory(content: Mapping[str, Any] | None) -> AlertMemory:
    if content is None:
        return AlertMemory()
    groups = {key: Group.from_json(one) for key, one in content["groups"].items()}
    return AlertMemory(groups, content["place"], content["number"])


class AlertLog:
    """The log of an alert's history, open for writing."""

    def __init__(self, location: str, history: int, clock: Callable[[], int]) -> None:
        options = LogOptions(memory=0, segment=_SEGMENT, disk=_DISK, history=history)
        self._storage = storage_at(location)
        self._writer = LogWriter.open(location, LAYOUT, options, clock)
        content = read_json(self._storage, STATE_FILE)
        self.memory = _memory(content)
        lines = [Notification(**one) for one in (content or {}).get("told", ())]
        if lines:
            self._append(lines, self.memory.number)

    def keep(self, memory: AlertMemory, lines: Sequence[Notification]) -> AlertMemory:
        """Store the state, and append history lines; durable when this returns."""
        last = self._writer.last_key
        number = max(memory.number, last[1] if last is not None else 0) + bool(lines)
        stored = AlertMemory(memory.groups, memory.place, number)
        content = {
            "groups": {key: one.to_json() for key, one in memory.groups.items()},
            "place": memory.place,
            "number": number,
            "told": [asdict(one) for one in lines],
        }
        self._storage.write(STATE_FILE, [json_bytes(content)])
        if lines:
            self._append(lines, number)
        return stored

    def trim(self) -> None:
        """Delete lines that are too old."""
        self._writer.trim()

    def close(self) -> None:
        self._writer.close()

    def _append(self, lines: Sequence[Notification], number: int) -> None:
        columns = [[getattr(one, name) for one in lines] for name in _SCHEMA.names]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
        key: BatchKey = (_WRITER, number)
        frames = [encode_frame(rows, LAYOUT.time, "zstd", batch=key)]
        while True:
            try:
                self._writer.append_frames(frames, watermark=lines[-1].time, key=key)
                return
            except LogFullError:
                before = self._writer.stored_bytes
                self._writer.drop_oldest()
                if self._writer.stored_bytes == before:
                    raise
            except Exception:
                with suppress(Exception):
                    self._writer.repair()
                raise


def read_history(location: str, limit: int) -> list[Notification]:
    """The last lines of an alert's history, newest first."""
    try:
        log = LogReader.open(location)
    except LogError:
        return []
    place = log.place_of(max(0, log.end.row - limit))
    batches = [frame.rows for frame in log.read(place) if len(frame.rows)]
    table = pa.Table.from_batches(batches, _SCHEMA)
    times = table.column("time").cast(pa.int64()).to_pylist()
    rows = table.drop_columns(["time"]).to_pylist()
    lines = [Notification(time=at, **row) for at, row in zip(times, rows, strict=True)]
    return lines[::-1][:limit]
