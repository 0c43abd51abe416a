"""A running plan: ITA, TPA or NTA, on a clock that advances as work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from time import thread_time_ns
from typing import NamedTuple

from nilometer.errors import InputError
from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.nile.answer import AnswerOperator, Change, Output
from nilometer_papers.algorithms.nile.merging import Merging
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Values
from nilometer_papers.algorithms.nile.schedulers import (
    ExpiryTriggered,
    InputTriggered,
    SelfScheduling,
    TimeProbing,
)
from nilometer_papers.algorithms.nile.stateful import Stateful
from nilometer_papers.algorithms.nile.stream_scan import StreamScan


class Approach(StrEnum):
    """How operators are scheduled, and how tuples end."""

    ITA = "ITA"
    """By input; expired tuples are found when an operator gets its next one (Nile section 6)."""
    TPA = "TPA"
    """By input, else by probing for the time (3.1)."""
    NTA = "NTA"
    """By input; scans emit a negative tuple for each one that expires (3.2)."""


class Scheduling(StrEnum):
    """When operators without input run."""

    ARRIVALS = "arrivals"
    """Time advances with arrivals: a stream is as far as its last tuple, whenever that arrived."""
    CLOCK = "clock"
    """Time advances with the clock, by which the system stamps arrivals: an operator runs when what
    it stores expires (Nile sections 3.1 and 3.2.1)."""
    PULLED = "pulled"
    """Operators ask for tuples as in STEAM; nobody probes for the time."""


class Arrival(NamedTuple):
    """A tuple of a stream that arrives at a time of the clock."""

    clock: int
    stream: int
    time: int
    """Its timestamp; those of one stream do not decrease."""
    values: Values


class Pipeline:
    """A running plan.

    Its clock, in microseconds, jumps to the next arrival when there is nothing to do, and advances
    by the time that a meter (nanoseconds) shows for each step of an operator.
    """

    def __init__(
        self,
        answer: AnswerOperator | Output,
        approach: Approach,
        meter: Callable[[], int] = thread_time_ns,
        scheduling: Scheduling = Scheduling.ARRIVALS,
    ) -> None:
        self.operators = _below(answer)
        """From scans to the answer."""
        self.clock = 0.0
        self.worked = 0.0
        """How long it has worked (microseconds)."""
        self.clocks: list[float] = []
        """When each change of the answer was emitted."""
        self._answer = answer
        self._meter = meter
        self._scheduling = scheduling
        self._next_arrival = FOREVER
        """Later arrivals are not earlier than this."""
        self._expired_at = EARLIEST
        """The time up to which operators have run for expired tuples."""
        self._has_worked = False
        """Whether any has run since then: it may have received tuples that have already expired."""
        self._scans = [one for one in self.operators if isinstance(one, StreamScan)]
        several = len({window for scan in self._scans for window in scan.windows}) > 1
        for scan in self._scans:
            clock = self._now if scheduling is Scheduling.CLOCK else None
            scan.start(approach is Approach.NTA, several, clock)
        self._scheduler = self._choose(approach)
        if scheduling is Scheduling.CLOCK:
            self._let_ask(approach is not Approach.ITA)
        for operator in self.operators:
            operator.open()
            self._scheduler.pass_on(operator)

    def _let_ask(self, asks: bool) -> None:
        """ITA has no probes: an operator with two inputs waits for tuples of both."""
        for operator in self.operators:
            if isinstance(operator, Merging):
                operator.asks = asks

    def _choose(self, approach: Approach) -> InputTriggered:
        if self._scheduling is Scheduling.PULLED:
            return SelfScheduling(self.operators)
        if self._scheduling is Scheduling.CLOCK:
            return ExpiryTriggered(self.operators, self._expiring(approach))
        probes = approach is Approach.TPA
        return TimeProbing(self.operators) if probes else InputTriggered(self.operators)

    def _expiring(self, approach: Approach) -> Sequence[Operator]:
        if approach is Approach.NTA:
            return self._scans
        stateful = [one for one in self.operators if isinstance(one, Stateful)]
        return stateful if approach is Approach.TPA else []

    @property
    def changes(self) -> list[Change]:
        """The changes of the answer so far, in the order in which they were emitted."""
        return self._answer.changes

    def replay(self, arrivals: Iterable[Arrival]) -> None:
        """Process arrivals, in the order of their clocks, until nothing is left to do."""
        for arrival in arrivals:
            self._check(arrival)
            self._next_arrival = arrival.clock
            while self.clock < arrival.clock and (self.step() or self._expire(arrival.clock)):
                pass
            self.clock = max(self.clock, arrival.clock)
            self.push(arrival.stream, arrival.time, arrival.values)
        self.run()

    def push(self, stream: int, time: int, values: Values) -> None:
        """Put a tuple before the scans of a stream."""
        for scan in self._scans:
            if scan.stream == stream:
                scan.arrivals.append((time, values))
                self._scheduler.schedule(scan)

    def run(self) -> None:
        """Work until nothing is left to do."""
        while self.step():
            pass

    def step(self) -> bool:
        """Let one operator run; return whether any could."""
        done = self._work(self._scheduler.step)
        self._has_worked = self._has_worked or done
        return done

    def _work(self, work: Callable[[], bool]) -> bool:
        """Do some work, and advance the clock by the time it takes."""
        began = self._meter()
        done = work()
        spent = (self._meter() - began) / 1000
        self.clock += spent
        self.worked += spent
        if len(self.clocks) < len(self._answer.changes):
            self.clocks += [self.clock] * (len(self._answer.changes) - len(self.clocks))
        return done

    def _check(self, arrival: Arrival) -> None:
        if self._scheduling is Scheduling.CLOCK and arrival.time != arrival.clock:
            raise InputError(
                "under a clock a tuple has the time of its arrival",
                detail=f"a tuple of {arrival.time} arrives at {arrival.clock}",
                hint="leave the clock out where timestamps are the streams' own",
            )

    def _now(self) -> int:
        """The time of the clock, limited to what no arrival can still have."""
        return min(int(self.clock), self._next_arrival)

    def _expire(self, before: int) -> bool:
        """Run operators for what expires next; False if nothing does before an instant."""
        if not isinstance(self._scheduler, ExpiryTriggered):
            return False
        tried = EARLIEST if self._has_worked else self._expired_at
        end = self._scheduler.next_end(tried)
        if end >= before:
            return False
        self.clock = max(self.clock, end)
        self._expired_at = self._now()
        self._work(self._expire_now)
        self._has_worked = False
        return True

    def _expire_now(self) -> bool:
        assert isinstance(self._scheduler, ExpiryTriggered)
        self._scheduler.expire(self._expired_at)
        return True

    def finish(self) -> None:
        """Note that all streams have ended: everything expires, under every approach."""
        self._let_ask(True)
        for operator in self.operators:
            self._scheduler.schedule(operator)
        self.run()
        self._scheduler = TimeProbing(self.operators)
        for scan in self._scans:
            scan.reach(FOREVER)
        for operator in self.operators:
            self._scheduler.pass_on(operator)
        self.run()


def _below(operator: Operator) -> list[Operator]:
    """An operator and all below it, lowest first."""
    below = [one for child in operator.children for one in _below(child)]
    return [*below, operator]
