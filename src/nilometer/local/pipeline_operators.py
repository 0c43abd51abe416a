"""An operator in a pipeline: when it may run, how far, and what it says of its time.

Every message holds whole instants, so an operator that runs up to a frontier has everything that
takes effect before it: the operators are the same as in stages. Under ITA an operator knows only
what has reached it. Under TPA and NTA it may ask the operators below (`get_time`): under TPA to
expire what it stores, under both to take its inputs in the order of time though one is silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from nilometer.local.pipeline_queues import Inbox, Message
from nilometer.local.pipeline_statistics import OperatorCounts
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.change_operator import times_of
from nilometer.operators.stage import Execution
from nilometer.operators.watermarks import NEVER


class Body(Protocol):
    """What an operator computes; every `ChangeOperator` is one."""

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """What it gives strictly before a frontier, of all that its inputs give before it."""


class PipelineOperator:
    """An operator with a queue for each of its inputs."""

    def __init__(
        self,
        name: str,
        body: Body,
        inboxes: Sequence[Inbox],
        execution: Execution,
        every: int | None = None,
    ) -> None:
        """An operator that gives something out only at multiples of `every`, if there is one."""
        self.name = name
        self.inboxes = tuple(inboxes)
        self.receivers: list[Inbox] = []
        self.counts = OperatorCounts(name)
        self._body = body
        self._probes = execution is not Execution.ITA
        self._every = every
        self._paced_until = FOREVER
        self._frontier = NEVER

    @property
    def queued(self) -> int:
        """How many messages wait."""
        return sum(len(inbox.queue) for inbox in self.inboxes)

    @property
    def due(self) -> int:
        """When the first thing happens that it knows of: a tuple expires, or a pace ends."""
        return min(self._paced_until, *(inbox.expiry for inbox in self.inboxes))

    def get_time(self) -> int:
        """Before which instant it has sent everything (GetTime of Nile section 3.1.1).

        That is the oldest tuple that it or an operator below it still works on, or the first
        that it has to expire; else how far the scans have come.
        """
        self.counts.probes += 1
        oldest = min(inbox.oldest() for inbox in self.inboxes)
        return max(self._frontier, min(oldest, self.due))

    def is_ready(self, furthest: int) -> bool:
        """Whether it has something to do, given how far the furthest stream has come."""
        if self.queued and self._has_input():
            return True
        due = self.due
        if not self._probes or due >= furthest:
            return False
        self._probe(due)
        return due < self._reach

    def run(self) -> Message | None:
        """Do what can be done; the message that was sent, if any."""
        frontier = self._reach
        taken = [inbox.take(frontier) for inbox in self.inboxes]
        inputs, marked = [batch for batch, _ in taken], any(mark for _, mark in taken)
        self.counts.calls += 1
        self.counts.rows_in += sum(map(len, inputs))
        out = self._body.process(inputs, frontier)
        self.counts.rows_out += len(out)
        self._frontier = frontier
        self._pace(inputs[0])
        if not len(out) and not marked:
            return None
        message = Message(out, frontier, marked)
        for inbox in self.receivers:
            inbox.put(message)
        return message

    @property
    def _reach(self) -> int:
        return min(inbox.reach for inbox in self.inboxes)

    def _has_input(self) -> bool:
        """Whether a tuple waits, and all other inputs are known to have come as far."""
        if self._probes and len(self.inboxes) > 1:
            self._probe(min(inbox.queue[0].first for inbox in self.inboxes if inbox.queue))
        reach = self._reach
        return any(inbox.has_before(reach) for inbox in self.inboxes)

    def _probe(self, instant: int) -> None:
        """Ask the inputs of which it is not known that they have passed an instant."""
        for inbox in self.inboxes:
            if inbox.reach <= instant:
                inbox.probe()

    def _pace(self, changes: pa.RecordBatch) -> None:
        """Remember when changes take effect that are held back."""
        if self._every is None:
            return
        if self._paced_until < self._frontier:
            self._paced_until = FOREVER
        if len(changes) and (latest := int(times_of(changes).max())) > EARLIEST:
            until = -(-latest // self._every) * self._every
            self._paced_until = until if until >= self._frontier else self._paced_until
