"""How the manager goes about its work; none of it changes what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY: Final = 86_400_000_000


@dataclass(frozen=True)
class ManagerSettings:
    """Waits are seconds; `reader_seen` and `forget_after` are microseconds of the clock."""

    look_every: float = 0.2
    """How often it looks who reads."""
    let_go_after: float = 3.0
    """For how long sensors are kept that nobody reads any more: a query that has failed is started
    again, and what a sensor says in between is not to be lost."""
    tick_every: float = 1.0
    """How often each log is trimmed, and told the time where nothing arrives."""
    status_every: float = 1.0
    first_wait: float = 0.1
    """Before the second attempt to reach a sensor; doubled for each further one."""
    longest_wait: float = 30.0
    close_timeout: float = 5.0
    """For how long a sensor may take to let go."""
    room_timeout: float = 0.2
    """Before another attempt to append to a log that is full."""
    pending_rows: int = 50_000
    """The most rows of one log that wait to be appended."""
    pending_bytes: int = 32 << 20
    append_rows: int = 20_000
    """The most rows that one append takes, as far as readings can be told apart."""
    recent_keys: int = 20_000
    """How many delivery keys are told to the sensors after a restart."""
    reader_seen: int = 60_000_000
    """For how long a reader counts as alive after its last sign of life."""
    forget_after: int = DAY
    """After how long an unnamed reader without a sign of life is forgotten."""
    identity: str = "nilometer"
    """A name of this database, for sensors that keep something for their reader."""
