"""The protocol of stream types (STEAM 3.3): three functions reach a sensor, read it, let it go.

A stream type is a class with `init_stream`, `read_stream` and `close_stream`, each a plain
function or `async`. Every sensor gets an object of its own, so what a sensor needs between calls
is kept in attributes. Plain functions run in a thread and may block; `async` ones share the
manager's loop and must not. Third parties add types by the entry point group
`nilometer.stream_types`.

A type may also have, and the manager looks for:

    options         a tuple of `Option` (nilometer.model.options) that WITH may give, read by CREATE
    pause_stream    called in place of `close_stream` when the process stops though the sensor is
                    still wanted: what arrives meanwhile is to be kept for it (MQTT's sessions)
    interval        seconds between two readings of a plain type after NO_VALUE
    every           seconds from one request to the next, of a type that asks its sensors
    duplicates      how many deliveries were dropped because they had been stored before
    dropped         how many readings were lost because nobody took them in time
    behind          how many readings wait at the other side, or None while that is not known
    tells_time      whether readings bear a time of their own where no column is declared for it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

ENTRY_POINTS: Final = "nilometer.stream_types"


class Status(StrEnum):
    """What `read_stream` has found."""

    NEW_VALUE = "new value"
    NO_VALUE = "no value"
    END = "end"


NEW_VALUE: Final = Status.NEW_VALUE
NO_VALUE: Final = Status.NO_VALUE
END: Final = Status.END


class Reading(NamedTuple):
    """What `read_stream` returns; a plain tuple (status, value, time) will do as well.

    The value is a mapping from columns to values, a sequence of values in the order of the
    columns, a single value where there is one column, or a record batch with many rows. A record
    batch and its key are stored by one append, or not at all.
    """

    status: Status
    value: Any = None
    time: int | None = None
    """Microseconds since 1970 (a datetime will do); None: the time column's value, or now."""
    key: bytes | None = None
    """What tells this reading from others if it may be delivered again; kept with the row."""
    stored: Callable[[], None] | None = None
    """Called in the manager's loop once the row is durable, or refused for good."""
    queued: bool = False
    """Whether the other side had kept it while nobody listened, so that it comes late."""
    origin: str | None = None
    """Where the other side keeps it, for a dead letter: a topic and an offset."""


@dataclass(frozen=True)
class SensorAddress:
    """All that a stream type is told about a sensor."""

    table: str
    """The stream or sensor table."""
    sensor: str
    """The sensor's name for messages: its first static column, or the stream's name."""
    address: str
    """What the row says about how to reach it: a URL, a topic, a path."""
    options: Mapping[str, str]
    """Those of WITH (…) that are the type's, not the log's, overridden by the row's own."""
    columns: pa.Schema
    """The columns of a reading; `kernels.read_times.form_of` tells how the times of one are given.
    """
    time: str | None
    """Which of them holds the time, if one does."""
    identity: str
    """A name that is this sensor's alone and stays, across restarts (for MQTT sessions)."""
    delivered: frozenset[bytes] = frozenset()
    """Keys of the last readings that were stored before a restart: they may come again."""
    owner: str = ""
    """A name of the table in this database alone, that stays; its sensors may share a connection.
    Empty: the table's name."""


class StreamType(Protocol):
    """A class of sensors. `can_wait`: whether a sensor can be slowed by not being read."""

    can_wait: bool

    def init_stream(self, sensor: SensorAddress) -> Any:
        """Reach the sensor; an exception is a failed attempt, and another one will follow."""

    def read_stream(self) -> Any:
        """The next reading, or NO_VALUE, or END, or a list of what has come.

        A list holds readings, and a `BadReadingError` in the place of what is none. After NO_VALUE
        a plain type is asked again after its `interval` (seconds, an attribute; 0.1 where there is
        none), an `async` one at once: it waits by itself. After an exception the sensor is closed
        and reached again, later each time.
        """

    def close_stream(self) -> Any:
        """Let the sensor go; called once for every init_stream that succeeded."""


class TryLaterError(Exception):
    """Raised by `read_stream` or `init_stream`: the sensor says when it is to be asked again."""

    def __init__(self, reason: str, after: float) -> None:
        super().__init__(reason)
        self.after = after
        """Seconds from now, at least."""


class BadReadingError(Exception):
    """Raised by `read_stream`, or part of its list: something came that is not a reading.

    It goes to the dead-letter log with its reason, and the sensor stays open.
    """

    def __init__(
        self, reason: str, payload: bytes | str = b"", stored: Callable[[], None] | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.payload = payload
        self.stored = stored
