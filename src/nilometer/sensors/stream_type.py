"""The protocol of stream types (STEAM 3.3): three functions open, read and close a sensor.

A stream type is a class with `init_stream`, `read_stream` and `close_stream`, each a plain function
or `async`. Every sensor gets its own object, so whatever a sensor needs between calls is kept in
attributes. Plain functions run in a thread and may block; `async` ones share the manager's loop and
must not. Third parties add types through the entry point group `nilometer.stream_types`.

A type may also have these attributes, which the manager looks for:

    options         a tuple of `Option` (nilometer.model.options) that WITH may give, read by CREATE
    pause_stream    called instead of `close_stream` when the process stops but the sensor is
                    still wanted: what arrives meanwhile must be kept for it (MQTT's sessions)
    interval        seconds between two readings of a plain type after NO_VALUE
    every           seconds from one request to the next, for a type that asks its sensors
    duplicates      how many deliveries were dropped because they had been stored before
    dropped         how many readings were lost because nobody read them in time
    behind          how many readings wait at the other side, or None if unknown
    tells_time      whether readings have a time of their own if no column is declared for it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

ENTRY_POINTS: Final = "nilometer.stream_types"


class Status(StrEnum):
    """The outcome of `read_stream`."""

    NEW_VALUE = "new value"
    NO_VALUE = "no value"
    END = "end"


NEW_VALUE: Final = Status.NEW_VALUE
NO_VALUE: Final = Status.NO_VALUE
END: Final = Status.END


class Reading(NamedTuple):
    """What `read_stream` returns; a plain tuple (status, value, time) is accepted as well.

    The value is a mapping from columns to values, a sequence of values in the order of the columns,
    a single value if there is one column, or a record batch with many rows. A record batch and its
    key are stored by one append, or not at all.
    """

    status: Status
    value: Any = None
    time: int | None = None
    """Microseconds since 1970 (or a datetime); None: the value of the time column, or now."""
    key: bytes | None = None
    """Identifies this reading if it may be delivered again; kept with the row."""
    stored: Callable[[], None] | None = None
    """Called in the manager's loop once the row is durable, or finally refused."""
    queued: bool = False
    """Whether the other side had kept it while nobody was listening, so that it is late."""
    origin: str | None = None
    """Where the other side keeps it, for a dead letter: a topic and an offset."""


@dataclass(frozen=True)
class SensorAddress:
    """Everything a stream type receives about a sensor."""

    table: str
    """The stream or sensor table."""
    sensor: str
    """The sensor's name in messages: its first static column, or the stream's name."""
    address: str
    """How to reach the sensor: a URL, a topic, a path."""
    options: Mapping[str, str]
    """The options of WITH (…) for the type, not the log, overridden by those of the row."""
    columns: pa.Schema
    """The columns of a reading; `kernels.read_times.form_of` tells how the times of one are given.
    """
    time: str | None
    """Which of them holds the time, if any."""
    identity: str
    """A name unique to this sensor that survives restarts (for MQTT sessions)."""
    delivered: frozenset[bytes] = frozenset()
    """Keys of the last readings stored before a restart: they may be delivered again."""
    owner: str = ""
    """A name unique to the table in this database, which stays; its sensors may share a connection.
    Empty: the table's name."""


class StreamType(Protocol):
    """A class of sensors. `can_wait`: whether a sensor slows down when it is not read.

    A type whose sensors deliver again everything after the last key in `delivered`, as of a
    position in a topic or a file, has a further attribute, `replays`, that is true.
    """

    can_wait: bool

    def init_stream(self, sensor: SensorAddress) -> Any:
        """Connect to the sensor; if this raises, the attempt has failed and another will follow."""

    def read_stream(self) -> Any:
        """Return the next reading, NO_VALUE, END, or a list of what has arrived.

        A list holds readings, and a `BadReadingError` for anything that is not a reading. After
        NO_VALUE a plain type is called again after its `interval` (seconds, an attribute; default
        0.1), an `async` one at once: it waits by itself. After an exception the sensor is closed
        and connected again, later each time.
        """

    def close_stream(self) -> Any:
        """Close the sensor; called once for every init_stream that succeeded."""


class TryLaterError(Exception):
    """Raised by `read_stream` or `init_stream` if the sensor says when to ask it again."""

    def __init__(self, reason: str, after: float) -> None:
        super().__init__(reason)
        self.after = after
        """Seconds from now, at least."""


class BadReadingError(Exception):
    """Raised by `read_stream`, or part of its list: something arrived that is not a reading.

    It goes to the dead-letter log with its reason, and the sensor stays open.
    """

    def __init__(
        self, reason: str, payload: bytes | str = b"", stored: Callable[[], None] | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.payload = payload
        self.stored = stored
