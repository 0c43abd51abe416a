"""How deliveries are doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeliveryState(StrEnum):
    """Where a delivery is."""

    RUNNING = "running"
    RETRYING = "retrying"
    """The receiver did not take the last chunk; another attempt follows."""
    STOPPED = "stopped"
    """Somebody stopped it, or the database was opened without being resumed."""
    FAILED = "failed"
    """The receiver has said that it wants nothing any more."""


@dataclass(frozen=True)
class DeliveryStatus:
    """One delivery; instants are microseconds since 1970."""

    name: str
    query: str
    unit: str
    state: DeliveryState
    delivered: int
    """How many rows have arrived."""
    position: int
    """The number of the first row of the results that has not."""
    lag: int
    """How many rows there are that have not."""
    lost: int
    """Rows that were gone before they could be delivered."""
    last_error: str | None
    """What went wrong, until a chunk arrives again."""
    next_try: int | None
    retries: int = 0
    """How many attempts have failed since it was started here."""
    last_success: int | None = None
    """When a chunk has arrived last."""
