"""Scans: where tuples enter a pipeline, one instant after the other; W-Expire is part of them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s, as_int64, validity
from nilometer.local.pipeline_queues import Inbox, Message
from nilometer.local.pipeline_statistics import OperatorCounts
from nilometer.model.time import EARLIEST, FOREVER, LATEST
from nilometer.operators.change_operator import make_changes, no_changes
from nilometer.sql.catalog import Relation
from nilometer.sql.types import TIMESTAMP

OPENED = EARLIEST + 1
"""How far scans have come at first: what holds since ever is known."""


class Scan:
    """Sends the tuples of a stream in the order of time, all of one instant at once.

    An instant is sent when the stream has passed it. With a lifetime every tuple is followed by
    a negative one when it leaves its window (W-Expire, Nile section 3.2.1). The last of a
    tuple's columns says when it arrived.
    """

    def __init__(
        self, name: str, relation: Relation, lifetime: int | None, distinct_times: bool
    ) -> None:
        """A scan; with `distinct_times` a tuple's instant is over as soon as it has come."""
        self.name = name
        self.relation = relation
        self.receivers: list[Inbox] = []
        self.counts = OperatorCounts(name)
        self.late = self.without_time = self.negative_rows = 0
        self.clock = OPENED
        """Nothing before this instant is sent any more."""
        self._ahead = int(distinct_times) - relation.clock.lateness
        self._lifetime = lifetime
        self._pushed: deque[tuple[pa.RecordBatch | None, int]] = deque()
        """Tuples with the times of their arrival, or None and how far the stream has come."""
        self._events: list[tuple[int, int, int, pa.RecordBatch]] = []
        """(instant, number, diff, tuples) of what has to be sent, the first on top."""
        self._numbers = count()

    @property
    def types(self) -> list[pa.DataType]:
        """The types of what it sends: the relation's columns, and the time of arrival."""
        return [*(kind for kind in self.relation.types if kind is not None), pa.int64()]

    @property
    def queued(self) -> int:
        return len(self._pushed)

    def open(self, static: pa.RecordBatch | None) -> None:
        """Send what is known at first: all rows of a static table, or that there are none."""
        if static is not None:
            self.clock = FOREVER
            self._send([self._signed(static, EARLIEST, EARLIEST, 1)], FOREVER, is_mark=True)
        else:
            self._send([], OPENED, is_mark=True)

    def push(self, rows: pa.RecordBatch, now: int) -> None:
        """Put tuples into the queue, each with the time of its arrival."""
        self._pushed.extend((rows.slice(i, 1), now) for i in range(len(rows)))
        self.counts.longest_queue = max(self.counts.longest_queue, len(self._pushed))

    def reach(self, instant: int) -> None:
        """Say that nothing before an instant will be pushed any more."""
        self._pushed.append((None, instant))

    def get_time(self) -> int:
        """Before which instant it has sent everything."""
        self.counts.probes += 1
        return self.clock

    def is_ready(self, furthest: int) -> bool:
        """Whether something has been pushed."""
        return bool(self._pushed)

    def run(self) -> None:
        """Take in one tuple, and send the instants that are over."""
        self.counts.calls += 1
        rows, now = self._pushed.popleft()
        if rows is None:
            self.clock = max(self.clock, now)
        else:
            self.counts.rows_in += 1
            self._take_in(rows, now)
        while self._events and self._events[0][0] < self.clock:
            self._send_instant()
        if self.clock >= FOREVER:
            self._send([], FOREVER, is_mark=True)

    def _take_in(self, rows: pa.RecordBatch, now: int) -> None:
        time = self._time_of(rows, now)
        if time is None:
            self.without_time += 1
            return
        if time < self.clock:
            self.late += 1
            return
        self._add(time, 1, self._signed(rows, time, now, 1))
        self.clock = max(self.clock, time + self._ahead)

    def _time_of(self, rows: pa.RecordBatch, now: int) -> int | None:
        if self.relation.time is None:
            return now
        column = rows.column(self.relation.columns.index(self.relation.time)).cast(TIMESTAMP)
        time = int(as_int64(column)[0])
        return time if validity(column) is None and EARLIEST <= time <= LATEST else None

    def _signed(self, rows: pa.RecordBatch, time: int, now: int, diff: int) -> pa.RecordBatch:
        arrived = pa.array(_all(rows, now))
        return make_changes([*rows.columns, arrived], _all(rows, time), _all(rows, diff))

    def _add(self, instant: int, diff: int, rows: pa.RecordBatch) -> None:
        heapq.heappush(self._events, (instant, next(self._numbers), diff, rows))

    def _send_instant(self) -> None:
        instant, parts = self._events[0][0], []
        while self._events and self._events[0][0] == instant:
            _, _, diff, rows = heapq.heappop(self._events)
            parts.append(rows)
            if diff < 0:
                self.negative_rows += len(rows)
            elif self._lifetime is not None:
                self._expire_later(instant, rows)
        self._send(parts, instant + 1, is_mark=False)

    def _expire_later(self, instant: int, rows: pa.RecordBatch) -> None:
        assert self._lifetime is not None
        end = instant + self._lifetime + 1
        if end > LATEST:
            return
        negative = make_changes(rows.columns[:-2], _all(rows, end), _all(rows, -1))
        self._add(end, -1, negative)

    def _send(self, parts: Sequence[pa.RecordBatch], clock: int, is_mark: bool) -> None:
        batch = pa.concat_batches(parts) if parts else no_changes(self.types)
        self.counts.rows_out += len(batch)
        for inbox in self.receivers:
            inbox.put(Message(batch, clock, is_mark))


def _all(rows: pa.RecordBatch, value: int) -> Int64s:
    return np.full(len(rows), value, np.int64)
