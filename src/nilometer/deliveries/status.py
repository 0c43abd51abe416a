"""The state of deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeliveryState(StrEnum):
    """The state of a delivery."""

    RUNNING = "running"
    RETRYING = "retrying"
    """The receiver did not accept the last chunk; another attempt will follow."""
    STOPPED = "stopped"
    """It was stopped, or the database was opened without being resumed."""
    FAILED = "failed"
    """The receiver has reported that it accepts nothing any more."""


@dataclass(frozen=True)
class DeliveryStatus:
    """One delivery; instants are microseconds since 1970."""

    name: str
    query: str
    unit: str
    state: DeliveryState
    delivered: int
    """How many rows were delivered."""
    position: int
    """The number of the first row of the results that was not delivered."""
    lag: int
    """How many rows are not delivered yet."""
    lost: int
    """Rows that were deleted before they could be delivered."""
    last_error: str | None
    """The last error, until a chunk is delivered again."""
    next_try: int | None
    retries: int = 0
    """How many attempts have failed since it was started here."""
    last_success: int | None = None
    """When the last chunk was delivered."""
