"""A windowed plan as the paper runs it: operators, FIFO queues, and a scheduler (Nile section 5).

Tuples are pushed one by one, and the scheduler calls one operator at a time. The clock is the
user's, so the times at which answers come out can be studied without Spark and without waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from nilometer.errors import InputError
from nilometer.local.pipeline_build import PipelineBuilder
from nilometer.local.pipeline_clock import Clock, Costs, SimulatedClock
from nilometer.local.pipeline_operators import PipelineOperator
from nilometer.local.pipeline_scan import Scan
from nilometer.local.pipeline_statistics import (
    OperatorCounts,
    PipelineStatistics,
    ResponseTimes,
)
from nilometer.local.run_changes import changelog_table
from nilometer.local.schedulers import RoundRobin, Scheduler
from nilometer.model.time import FOREVER
from nilometer.operators.stage import Execution
from nilometer.sql.changes_plan import ChangesPlan


@dataclass(frozen=True)
class Output:
    """Changes of the answer, and what the clock showed when they came out."""

    changes: pa.RecordBatch
    clock: int


class Pipeline:
    """A running pipeline; see `LocalDatabase.pipeline`."""

    def __init__(
        self,
        plan: ChangesPlan,
        execution: Execution,
        held: Mapping[str, pa.RecordBatch],
        scheduler: Scheduler | None = None,
        clock: Clock | None = None,
        costs: Costs | None = None,
        distinct_times: bool = False,
    ) -> None:
        """Start a plan; `held` are static tables."""
        self._clock = SimulatedClock() if clock is None else clock
        if costs is not None and not isinstance(self._clock, SimulatedClock):
            raise InputError(
                "costs need a clock that can be moved", hint="give a SimulatedClock, or no costs"
            )
        builder = PipelineBuilder(execution, distinct_times)
        self.plan = plan
        self.outputs: list[Output] = []
        """The answer so far, in the order in which it came out."""
        self._root = builder.build(plan)
        self._operators = builder.operators
        self._scans = builder.scans
        self._scheduler = RoundRobin() if scheduler is None else scheduler
        self._costs = costs
        self._response = ResponseTimes()
        self._started = self._clock()
        self._finished = False
        for scan in self._scans:
            relation = scan.relation
            scan.open((relation.rows or held[relation.name]) if relation.is_table else None)

    @property
    def operators(self) -> list[str]:
        """The names of the operators, from scans to the answer."""
        return [operator.name for operator in self._operators]

    @property
    def streams(self) -> list[str]:
        """The names of the streams that are read."""
        names = (scan.relation.name for scan in self._scans if not scan.relation.is_table)
        return list(dict.fromkeys(names))

    def push(self, stream: str, rows: pa.RecordBatch | pa.Table, now: int | None = None) -> None:
        """Put tuples before all scans of a stream, at the time `now` of the clock.

        A simulated clock that is behind is moved to that time.
        """
        if now is not None and isinstance(self._clock, SimulatedClock):
            self._clock.move_to(now)
        time = self._clock() if now is None else now
        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        for scan in self._scans_of(stream):
            for batch in batches:
                scan.push(batch, time)

    def reach(self, instant: int, stream: str | None = None) -> None:
        """Say that a stream, or every one, brings no tuple before an instant any more."""
        for name in self.streams if stream is None else (stream,):
            for scan in self._scans_of(name):
                scan.reach(instant)

    def run(self, until: int | None = None) -> list[Output]:
        """Let operators work until none has anything to do, or until a time of the clock."""
        first = len(self.outputs)
        while (until is None or self._clock() < until) and self._step():
            pass
        return self.outputs[first:]

    def finish(self) -> pa.Table:
        """The whole changelog: all streams have ended, and everything expires."""
        self.run()
        if not self._finished:
            self._finished = True
            self.reach(FOREVER)
            self.run()
        return self.changelog()

    def changelog(self) -> pa.Table:
        """The answer so far, as `LocalDatabase.sql` gives it."""
        return changelog_table(self.plan.root.columns, [one.changes for one in self.outputs])

    @property
    def statistics(self) -> PipelineStatistics:
        """What has been done so far; the end of the streams counts for no response time."""
        return PipelineStatistics(
            tuple(_counts(operator) for operator in self._operators),
            replace(self._response),
            sum(scan.negative_rows for scan in self._scans),
            sum(scan.late for scan in self._scans),
            sum(scan.without_time for scan in self._scans),
            sum(operator.queued for operator in self._operators),
            self._clock() - self._started,
        )

    def _scans_of(self, stream: str) -> list[Scan]:
        if stream not in self.streams:
            raise InputError(
                f"this query reads no stream {stream}",
                detail=f"it reads {', '.join(self.streams) or 'none'}",
            )
        return [scan for scan in self._scans if scan.relation.name == stream]

    def _step(self) -> bool:
        """Let one operator work, if any can."""
        for operator in self._scheduler.order(self._operators):
            if self._is_ready(operator):
                self._run(operator)
                return True
        return False

    def _is_ready(self, operator: Scan | PipelineOperator) -> bool:
        if self._costs is None:
            return operator.is_ready(self._furthest())
        before = self._probes()
        ready = operator.is_ready(self._furthest())
        self._pass_time(self._costs.probe * (self._probes() - before))
        return ready

    def _run(self, operator: Scan | PipelineOperator) -> None:
        before = operator.counts.rows_in
        message = operator.run()
        if self._costs is not None:
            rows = operator.counts.rows_in - before
            self._pass_time(self._costs.call + self._costs.row * rows)
        if operator is self._root and message is not None and len(message.batch):
            self.outputs.append(Output(message.batch, self._clock()))
            if not self._finished:
                self._response.add(message.batch, self._clock())

    def _pass_time(self, microseconds: int) -> None:
        assert isinstance(self._clock, SimulatedClock)
        self._clock.advance(microseconds)

    def _probes(self) -> int:
        return sum(operator.counts.probes for operator in self._operators)

    def _furthest(self) -> int:
        """How far the furthest stream has come: what expires later cannot have expired yet."""
        streams = (scan.clock for scan in self._scans if not scan.relation.is_table)
        return max(streams, default=FOREVER)


def _counts(operator: Scan | PipelineOperator) -> OperatorCounts:
    counts = replace(operator.counts)
    if isinstance(operator, PipelineOperator):
        counts.longest_queue = max(inbox.longest for inbox in operator.inboxes)
    return counts
