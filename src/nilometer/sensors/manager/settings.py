"""Settings of the manager; none of them changes what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY: Final = 86_400_000_000


@dataclass(frozen=True)
class ManagerSettings:
    """Waits are seconds; `reader_seen` and `forget_after` are microseconds of the clock."""

    look_every: float = 0.2
    """How often it looks for readers."""
    let_go_after: float = 3.0
    """How long sensors stay open without a reader: a query that has failed is started again, and
    what a sensor sends in between must not be lost."""
    tick_every: float = 1.0
    """How often each log is trimmed, and its watermark advanced if nothing arrives."""
    status_every: float = 1.0
    first_wait: float = 0.1
    """Wait before the second attempt to connect to a sensor; doubled for each further one."""
    longest_wait: float = 30.0
    close_timeout: float = 5.0
    """How long a sensor may take to close."""
    room_timeout: float = 0.2
    """Wait before another attempt to append to a full log."""
    pending_rows: int = 50_000
    """The maximum number of rows of one log that wait to be appended."""
    pending_bytes: int = 32 << 20
    append_rows: int = 20_000
    """The maximum number of rows in one append, as far as readings can be split."""
    recent_keys: int = 20_000
    """How many delivery keys the sensors receive after a restart."""
    reader_seen: int = 60_000_000
    """How long a reader counts as alive after it was last seen."""
    forget_after: int = DAY
    """How long after it was last seen an unnamed reader is forgotten."""
    identity: str = "nilometer"
    """A name of this database, for sensors that keep something for their reader."""
