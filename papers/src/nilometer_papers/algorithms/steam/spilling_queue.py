"""A StreamsQueue of limited memory, whose tail is spilled to disk (STEAM section 5.1, Figure 5)."""

from __future__ import annotations

import pickle
from collections import deque
from tempfile import TemporaryFile
from typing import IO, Final

from nilometer.errors import InputError
from nilometer_papers.algorithms.stream_tuple import StreamTuple

PARTITIONS: Final = 4
"""Two for output, two for input."""


class SpillingQueue:
    """In memory as long as it fits; after that its memory is divided into four partitions.

    The first two are a double buffer for whoever takes tuples, the last two one for new tuples:
    a full one is written to a temporary file, an empty one is filled from it. STEAM schedules
    both; here they happen at once. The order remains that of arrival.
    """

    def __init__(self, limit: int) -> None:
        """A queue for this many tuples in memory."""
        if limit < PARTITIONS:
            raise InputError(f"a queue that spills holds {PARTITIONS} tuples or more, got {limit}")
        self.attached = 0
        self.limit = limit
        self.spilled = 0
        """Tuples that were written to disk."""
        self.max_in_memory = 0
        self._size = limit // PARTITIONS
        self._out: deque[deque[StreamTuple]] = deque()
        """Partitions that tuples are taken from, in order; at most two while it spills."""
        self._in: list[StreamTuple] = []
        """The partition that is being filled."""
        self._file: IO[bytes] | None = None
        """Open while anything is on disk."""
        self._blocks: deque[tuple[int, int, int]] = deque()
        """What is on disk, oldest first: (position, number of bytes, number of tuples)."""

    @property
    def in_memory(self) -> int:
        """How many tuples are in memory."""
        return sum(map(len, self._out)) + len(self._in)

    @property
    def on_disk(self) -> int:
        """How many tuples are on disk."""
        return sum(tuples for _, _, tuples in self._blocks)

    def __len__(self) -> int:
        return self.in_memory + self.on_disk

    def put(self, one: StreamTuple) -> None:
        self._in.append(one)
        if len(self._in) >= self._size:
            self._swap_out()
        self.max_in_memory = max(self.max_in_memory, self.in_memory)

    def take(self) -> StreamTuple | None:
        while self._out and not self._out[0]:
            self._out.popleft()
        if len(self._out) < PARTITIONS // 2:
            self._prefetch()
        if self._out:
            return self._out[0].popleft()
        return self._in.pop(0) if self._in else None

    def flush(self) -> None:
        self._out.clear()
        self._in.clear()
        self._blocks.clear()
        self._close()

    def _swap_out(self) -> None:
        """Move a full partition on: to the output if it fits there, else to disk."""
        full, self._in = self._in, []
        fits = sum(map(len, self._out)) + len(full) + self._size <= self.limit
        if not self._blocks and fits:
            self._out.append(deque(full))
            return
        self._blocks.append((*self._write([tuple(one) for one in full]), len(full)))
        self.spilled += len(full)

    def _prefetch(self) -> None:
        """Fill the output from disk, until nothing is left there."""
        while self._blocks and len(self._out) < PARTITIONS // 2:
            place, length, _ = self._blocks.popleft()
            assert self._file is not None
            self._file.seek(place)
            rows = pickle.loads(self._file.read(length))
            self._out.append(deque(StreamTuple(*one) for one in rows))
        if not self._blocks:
            self._close()

    def _write(self, rows: list[tuple[object, ...]]) -> tuple[int, int]:
        """Append to the file; returns the position and the number of bytes."""
        if self._file is None:
            self._file = TemporaryFile(prefix="nilometer-streams-queue-")  # noqa: SIM115 (_close)
        data = pickle.dumps(rows)
        place = self._file.seek(0, 2)
        self._file.write(data)
        return place, len(data)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
