"""FIFO queues between operators, and what an operator knows of each of its inputs."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, as_int64
from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import DIFF, TIME, times_of
from nilometer.operators.pending import Pending
from nilometer.operators.received import changes_of
from nilometer.operators.stage import concat
from nilometer.operators.watermarks import NEVER


@dataclass(frozen=True)
class Message:
    """Changes, or rows with their periods, and how far their sender has come."""

    batch: pa.RecordBatch
    """All of it is strictly before the clock, but for the ends of periods."""
    clock: int
    """What is sent later takes effect at or after this instant."""
    is_mark: bool = False
    """It is passed on even if it says nothing else: the beginning and the end of a run."""

    @cached_property
    def first(self) -> int:
        """When the first of it takes effect."""
        return int(times_of(self.batch).min()) if len(self.batch) else self.clock


class Sender(Protocol):
    """What stands before a queue."""

    def get_time(self) -> int:
        """Before which instant everything has been sent."""


class Inbox:
    """One input of an operator."""

    def __init__(self, sender: Sender, types: Sequence[pa.DataType], expires: bool) -> None:
        """Rows of these types; if they come with periods that end here, it `expires` them."""
        columns = [(f"c{i}", kind) for i, kind in enumerate(types)]
        self._schema = pa.schema([*columns, (TIME, pa.int64()), (DIFF, pa.int64())])
        self._sender = sender
        self._pending = Pending(types, MemoryStore()) if expires else None
        self._ends: list[int] = []
        self.queue: deque[Message] = deque()
        self.longest = 0
        self.clock = NEVER
        """What is not in the queue yet takes effect at or after this instant."""

    @property
    def reach(self) -> int:
        """How far the operator could go if it were alone with this input."""
        return self.queue[0].clock if self.queue else self.clock

    @property
    def expiry(self) -> int:
        """When the first stored tuple expires."""
        return self._ends[0] if self._ends else FOREVER

    def put(self, message: Message) -> None:
        """Add a message to the queue."""
        batch = pa.RecordBatch.from_arrays(message.batch.columns, schema=self._schema)
        self.queue.append(Message(batch, message.clock, message.is_mark))
        self.longest = max(self.longest, len(self.queue))

    def has_before(self, frontier: int) -> bool:
        """Whether something in the queue can be processed up to a frontier."""
        if not self.queue:
            return False
        head = self.queue[0]
        return head.first < frontier or (head.is_mark and head.clock <= frontier)

    def probe(self) -> None:
        """Ask how far an input has come from which nothing waits."""
        if not self.queue:
            self.clock = max(self.clock, self._sender.get_time())

    def oldest(self) -> int:
        """The time of the oldest tuple that waits; else how far the input has come."""
        self.probe()
        return self.queue[0].first if self.queue else self.clock

    def take(self, frontier: int) -> tuple[pa.RecordBatch, bool]:
        """All changes strictly before a frontier, and whether there was a mark."""
        parts, marked = [], False
        while self.has_before(frontier):
            head = self.queue.popleft()
            early = times_of(head.batch) < frontier
            if early.all():
                parts.append(head.batch)
                self.clock, marked = max(self.clock, head.clock), marked or head.is_mark
            else:
                parts.append(_where(head.batch, early))
                rest = _where(head.batch, ~early)
                self.queue.appendleft(Message(rest, head.clock, head.is_mark))
        taken = concat([part for part in parts if len(part)], self._schema)
        return (taken if self._pending is None else self._expire(taken, frontier)), marked

    def _expire(self, periods: pa.RecordBatch, frontier: int) -> pa.RecordBatch:
        """Periods as changes: those that begin, and those stored that have ended."""
        assert self._pending is not None
        if not len(periods) and self.expiry >= frontier:
            return periods
        for end in as_int64(periods.column(periods.num_columns - 1)).tolist():
            if end < FOREVER:
                heapq.heappush(self._ends, end)
        while self.expiry < frontier:
            heapq.heappop(self._ends)
        return self._pending.take([c for c in changes_of(periods) if len(c)], frontier)


def _where(batch: pa.RecordBatch, chosen: Bools) -> pa.RecordBatch:
    return batch.take(pa.array(np.flatnonzero(chosen)))
