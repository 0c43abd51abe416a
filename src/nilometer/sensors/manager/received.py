"""What the sensors' tasks pass to the log, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import pyarrow as pa

from nilometer.sensors.manager.sensor_record import SensorRecord


class Event(Enum):
    """What has happened at a sensor."""

    READING = auto()
    BAD_READING = auto()
    OPENED = auto()
    ENDED = auto()
    CLOSED = auto()


@dataclass(slots=True)
class Received:
    """One event, and its outcome."""

    event: Event
    sensor: SensorRecord
    version: int
    arrived: int
    value: Any = None
    """A reading's value, or what arrived instead of a reading."""
    time: int | None = None
    key: bytes | None = None
    stored: Callable[[], None] | None = None
    queued: bool = False
    """Whether the other side had kept it while nobody was listening."""
    origin: str | None = None
    """Where the other side keeps it."""
    reason: str | None = None
    """Why it is not a reading."""
    rows: int = 0
    """How many of its rows are stored."""

    @property
    def size(self) -> int:
        """How many rows it may contain."""
        return len(self.value) if isinstance(self.value, pa.RecordBatch) else 1

    @property
    def weight(self) -> int:
        """Roughly how many bytes of memory it takes."""
        value = self.value
        if isinstance(value, pa.RecordBatch):
            return int(value.nbytes)
        parts = value.values() if isinstance(value, Mapping) else (value,)
        return 500 + sum(len(one) for one in parts if isinstance(one, str | bytes))
