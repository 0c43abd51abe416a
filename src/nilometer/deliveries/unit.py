"""The protocol of delivery units: a class whose objects hand chunks of results to a receiver.

A unit has `options`, a tuple of `Option` (nilometer.model.options); it is made with a
`UnitSetting` whenever a delivery begins; `deliver` hands over one chunk, returns once the receiver
has it for good, and raises if not; `close` lets the receiver go. It runs in a thread of its
delivery's own and may block. Third parties add units by the entry point group
`nilometer.delivery_units`.

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
"""What tells a result from all others, in rows that are delivered."""


@dataclass(frozen=True)
class ChunkSize:
    """How much is delivered at a time."""

    rows: int = 1_000
    bytes: int = 1 << 20
    every: float = 0.0
    """For how many seconds rows are gathered, unless there are enough earlier."""


@dataclass(frozen=True)
class Chunk:
    """Results that are delivered together; the same ones again until they have arrived."""

    delivery: str
    query: str
    log_id: str
    """That of the log of the results, which no other log has."""
    first_row: int
    """The number of its first row in that log."""
    rows: pa.Table

    @property
    def id(self) -> str:
        """The same for every attempt, and that of no other chunk."""
        return f"{self.log_id}.{self.first_row}-{self.first_row + len(self.rows)}"

    def row_id(self, place: int) -> str:
        """The id of one of its rows: whatever chunk it comes in, the same."""
        return f"{self.log_id}.{self.first_row + place}"

    def with_ids(self) -> pa.Table:
        """The rows with their ids as the last column."""
        ids = pa.array([self.row_id(at) for at in range(len(self.rows))], pa.string())
        return self.rows.append_column(ID, ids)


@dataclass(frozen=True)
class UnitSetting:
    """All that a unit is told about a delivery."""

    delivery: str
    query: str
    options: Mapping[str, Any]
    """Those of WITH (…), read, and defaults for the others."""
    folders: Sequence[Path]
    """Below which files may be written; relative paths begin at the first."""
    find_function: Callable[[str], Callable[..., Any]]
    """The Python function that is registered under a name; InputError: there is none."""


class DeliveryUnit(Protocol):
    """Hands chunks of results to a receiver."""

    options: Sequence[Option]

    def __init__(self, setting: UnitSetting) -> None: ...

    def deliver(self, chunk: Chunk) -> None:
        """Hand over a chunk that may have been delivered before; raises if it did not arrive."""

    def close(self) -> None:
        """Let the receiver go."""


class ReceiverError(Exception):
    """Raised by `deliver`: the receiver did not take a chunk, and should not be asked too soon."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after
        """Seconds from now, at least."""


class ReceiverGoneError(ReceiverError):
    """Raised by `deliver`: the receiver wants nothing any more; the delivery fails for good."""
