"""How a log is stored: what may be lost, how much memory and disk it may use, how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nilometer.model.time import FOREVER

MEGABYTE: Final = 1 << 20


class Fsync(StrEnum):
    """When appended rows are forced to the disk, and so what a power failure may lose.

    ALWAYS    before `append` returns: nothing that was acknowledged.
    INTERVAL  every so often: what was appended since.
    NEVER     when the system decides to: what it had not written yet.
    REPLAYED  when its writer asks: nothing, as the writer appends again, byte for byte, what a
              power failure has removed. Only for logs whose rows are kept elsewhere until then.

    A process that is killed loses nothing under any of them.
    """

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"
    REPLAYED = "replayed"


class WhenFull(StrEnum):
    """What happens to readings of a source without backpressure, once the disk budget is used."""

    DROP_OLDEST = "drop_oldest"
    DROP_NEWEST = "drop_newest"
    FAIL = "fail"


class Durability(StrEnum):
    """Where rows of a log in an object store are when an append returns.

    STORE  in the object store: every append is an object.
    DISK   on the server's own disk, in a write-ahead, which is shipped in the background: many
           appends are an object.

    A log in a folder is on a disk, whatever is chosen.
    """

    STORE = "store"
    DISK = "disk"


@dataclass(frozen=True)
class LogOptions:
    """The settings of one log; times in microseconds."""

    fsync: Fsync = Fsync.ALWAYS
    fsync_every: int = 1_000_000
    memory: int = 64 * MEGABYTE
    """Bytes of the newest rows kept in the writer's memory for readers in its process."""
    segment: int = 64 * MEGABYTE
    """The size from which on a new segment is started."""
    disk: int | None = None
    """The most that segments may take; None: no limit."""
    when_full: WhenFull = WhenFull.DROP_NEWEST
    history: int = 0
    """How long segments are kept after every reader has read them; FOREVER: always."""
    compression: str | None = "zstd"
    keys_kept: int = 10_000
    """This many of the newest delivery keys are kept, so that repeated deliveries are recognised
    after a restart."""
    durability: Durability | None = None
    """None: in the object store, if the log is in one."""
    ship_size: int = 8 * MEGABYTE
    """With durability DISK: the size of the write-ahead from which on it is shipped, and"""
    ship_every: int = 10_000_000
    """how often it is shipped even if it is smaller."""
    write_ahead: int = 1024 * MEGABYTE
    """The most that the write-ahead may take."""

    @property
    def keeps_everything(self) -> bool:
        return self.history >= FOREVER
