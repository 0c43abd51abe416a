"""The protocol of delivery units: a class whose objects hand chunks of results to a receiver.

A unit has `options`, a tuple of `Option` (nilometer.model.options); it is created with a
`UnitSetting` whenever a delivery starts; `deliver` hands over one chunk, returns once the receiver
has stored it, and raises otherwise; `close` disconnects. It runs in its delivery's own thread and
may block. Third parties add units through the entry point group `nilometer.delivery_units`.

A unit may also have:

    check           a class method that CREATE DELIVERY calls with the `UnitSetting`: it raises an
                    `OptionError` for what can never work
    chunk           a `ChunkSize`: how much is delivered at a time unless options say otherwise
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from nilometer.model.options import Option

ENTRY_POINTS: Final = "nilometer.delivery_units"
ID: Final = "_id"
"""The column that identifies a result in rows that are delivered."""


@dataclass(frozen=True)
class ChunkSize:
    """How much is delivered at a time."""

    rows: int = 1_000
    bytes: int = 1 << 20
    every: float = 0.0
    """For how many seconds rows are collected, unless enough arrive earlier."""


@dataclass(frozen=True)
class Chunk:
    """Results that are delivered together; the same ones again until they are accepted."""

    delivery: str
    query: str
    log_id: str
    """The id of the log of the results, unique to that log."""
    first_row: int
    """The number of its first row in that log."""
    rows: pa.Table

    @property
    def id(self) -> str:
        """Unique to this chunk, and the same for every attempt."""
        return f"{self.log_id}.{self.first_row}-{self.first_row + len(self.rows)}"

    def row_id(self, place: int) -> str:
        """The id of one of its rows: the same in whatever chunk it is delivered."""
        return f"{self.log_id}.{self.first_row + place}"

    def with_ids(self) -> pa.Table:
        """The rows with their ids as the last column."""
        ids = pa.array([self.row_id(at) for at in range(len(self.rows))], pa.string())
        return self.rows.append_column(ID, ids)


@dataclass(frozen=True)
class UnitSetting:
    """Everything a unit receives about a delivery."""

    delivery: str
    query: str
    options: Mapping[str, Any]
    """The parsed options of WITH (…), with defaults for the others."""
    folders: Sequence[Path]
    """Files may be written below these folders; relative paths start at the first."""
    find_function: Callable[[str], Callable[..., Any]]
    """The Python function registered under a name; raises InputError if there is none."""


class DeliveryUnit(Protocol):
    """Hands chunks of results to a receiver."""

    options: Sequence[Option]

    def __init__(self, setting: UnitSetting) -> None: ...

    def deliver(self, chunk: Chunk) -> None:
        """Hand over a chunk that may have been delivered before; raises if it was not accepted."""

    def close(self) -> None:
        """Disconnect from the receiver."""


class ReceiverError(Exception):
    """Raised by `deliver`: the receiver did not accept a chunk, and needs time before a retry."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after
        """Seconds from now, at least."""


class ReceiverGoneError(ReceiverError):
    """Raised by `deliver`: the receiver accepts nothing any more; the delivery fails for good."""
