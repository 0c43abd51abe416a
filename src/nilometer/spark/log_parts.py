"""Results on their way to a log: tasks write parts, and the driver appends them together.

A part counts only once it is appended to the log, which happens once per micro-batch: the log
remembers the last one by the query's id and the micro-batch's number.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from uuid import uuid4

import pyarrow as pa

from nilometer.errors import CheckpointError, LogError
from nilometer.kernels.net_changes import net_changes
from nilometer.log.layout import LogLayout
from nilometer.log.location import inside, storage_at
from nilometer.log.options import LogOptions
from nilometer.log.parts import Part, write_part
from nilometer.log.published import read_layout
from nilometer.log.storage import file_names
from nilometer.log.writer import LogWriter
from nilometer.spark.checkpoint import Checkpoint

_FOLDER: Final = "parts"
_SUFFIX: Final = ".part"


@dataclass(frozen=True)
class LogParts:
    """A log that is written to in parts."""

    location: str
    layout: LogLayout
    options: LogOptions
    checkpoint: str | None = None
    """The checkpoint of the query that writes, if known."""
    follows: tuple[str, int] | None = None
    """The last micro-batch under an earlier checkpoint of the query, if it had one."""
    address: str | None = None
    """Where executors find the checkpoint, if not by its path."""

    def exists(self) -> bool:
        return read_layout(storage_at(self.location)) is not None

    def create(self) -> None:
        """Create the log if there is none, so that it can be read, and found, at once.

        The query's checkpoint is repaired first if a power cut has left it behind the log.
        """
        with self._open() as log:
            if (checkpoint := self._checkpoint()) is not None:
                last = None if log.last_key == self.follows else log.last_key
                checkpoint.mend(storage_at(self.location), last, self.address)

    def write(self, batch: int, rows: Iterable[pa.RecordBatch]) -> Part | None:
        """Write the rows of a task to a part; None if there are no rows."""
        _require_log(self.location)
        path = inside(self.location, f"{_FOLDER}/{batch:012d}-{uuid4().hex}{_SUFFIX}")
        return write_part(path, rows, self.options.compression, time=self.layout.time)

    def append(self, parts: Sequence[Part], watermark: int | None, key: tuple[str, int]) -> None:
        """Append the parts of a micro-batch to the log, unless that was done before."""
        with self._open() as log:
            if log.last_key not in (None, self.follows) and log.last_key[0] != key[0]:
                raise CheckpointError(
                    f"the log {self.location} holds the results of another query",
                    hint="give every query a log and a checkpoint of its own",
                )
            if (checkpoint := self._checkpoint()) is not None:
                checkpoint.keep(storage_at(self.location), key, log.last_key)
            log.append_parts(parts, watermark=watermark, key=key)
            log.trim()
            log.pack()  # the log is closed now, so nothing else would do it
        self._sweep(key[1])

    def _sweep(self, batch: int) -> None:
        """Delete the leftovers of attempts of this and earlier micro-batches."""
        storage = storage_at(self.location)
        for name in file_names(storage, _FOLDER, _SUFFIX):
            if int(name.partition("-")[0]) <= batch:
                storage.delete(f"{_FOLDER}/{name}")

    def _checkpoint(self) -> Checkpoint | None:
        return None if self.checkpoint is None else Checkpoint.at(self.checkpoint)

    def _open(self) -> LogWriter:
        return LogWriter.open(self.location, self.layout, self.options, net=net_changes)


@lru_cache
def _require_log(location: str) -> None:
    """Raise LogError if the log that the driver has created is not found."""
    if read_layout(storage_at(location)) is None:
        raise LogError(
            f"this executor cannot find the log that it should write to: {location}",
            detail=f"on host {socket.gethostname()}",
            hint="keep the log where the driver and all executors find the same files: on a "
            "network file system, or in an object store",
        )
