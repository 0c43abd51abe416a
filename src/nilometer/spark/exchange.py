"""Moves envelopes from one stage to the next: inside Spark's rows, or beside them.

If all tasks run on one machine, a large envelope is put into a file of the local directory, and
only a ticket for it passes through the JVM, which would copy the bytes half a dozen times.
Spark still decides which attempt's tickets are delivered, so retries see what they should. If
the local directory has no room, envelopes pass through the JVM.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from nilometer.model.time import EARLIEST
from nilometer.operators.envelope import Header, seal, seal_in_memory, unseal
from nilometer.spark.state import local_folder, task_property

_TICKET: Final = b"@"
_SMALL: Final = 1 << 18


@dataclass(frozen=True)
class Exchange:
    """Transports the envelopes of one query."""

    operator: str
    by_ticket: bool

    def send(self, contents: Sequence[tuple[Header, pa.RecordBatch]]) -> pa.Array:
        """Send envelopes: a binary column of them, or of tickets for them."""
        size = sum(rows.nbytes for _, rows in contents)
        if not self.by_ticket or size < _SMALL:
            return seal_in_memory(contents)
        file = self._folder() / str(batch_number()) / uuid4().hex
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with pa.OSFile(str(file), "wb") as sink:
                ends = seal(contents, sink)
        except OSError:  # the disk may be full: the way through Spark is slower
            with suppress(OSError):
                file.unlink(missing_ok=True)
            return seal_in_memory(contents)
        tickets = [
            _TICKET + json.dumps([str(file), first, last]).encode()
            for first, last in pairwise(ends)
        ]
        return pa.array(tickets, pa.binary())

    def receive(self, bodies: Iterable[bytes]) -> list[tuple[Header, list[pa.RecordBatch]]]:
        """Receive the envelopes; files are memory-mapped, not read.

        Where two attempts of a task may run beside each other, both receive them in the same order,
        however Spark delivers them: their states have to be the same.
        """
        contents = map(self._content, bodies)
        if self.by_ticket:
            return [unseal(content) for content in contents]
        received = [(*unseal(content), zlib.crc32(content)) for content in contents]
        received.sort(key=lambda one: _order(one[0], one[2]))
        return [(header, rows) for header, rows, _ in received]

    def sweep(self) -> None:
        """Delete the leftovers of earlier micro-batches, which are no longer needed."""
        if not self.by_ticket:
            return
        now = batch_number()
        for folder in self._folder().glob("*"):
            if int(folder.name) < now:
                shutil.rmtree(folder, ignore_errors=True)

    def _content(self, body: bytes) -> bytes | pa.Buffer:
        if not body.startswith(_TICKET):
            return body
        path, first, last = json.loads(body[1:])
        with pa.memory_map(path) as file:
            file.seek(first)
            return file.read_buffer(last - first)

    def _folder(self) -> Path:
        return local_folder("exchange", self.operator)


def _order(header: Header, checksum: int) -> tuple[int, int, int, int]:
    """By time for rows of a stream; changes from another stage stay as their sender has them."""
    if header.frontier is not None:
        return header.stream, header.sender, 0, 0
    largest = header.punctuation.largest
    return header.stream, 0, EARLIEST if largest is None else largest, checksum


def batch_number() -> int:
    """The number of the micro-batch of this task."""
    return int(task_property("streaming.sql.batchId", "0"))


def is_on_one_machine(session: SparkSession) -> bool:
    """Whether all tasks of a session run on the driver's machine."""
    master = session.conf.get("spark.master", "") or ""
    return master == "local" or master.startswith("local[")
