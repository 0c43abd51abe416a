"""A running plan: ITA, TPA or NTA, on a clock that moves as work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from time import thread_time_ns
from typing import NamedTuple

from nilometer.algorithms.nile.answer import Answer, Change
from nilometer.algorithms.nile.operator import Operator
from nilometer.algorithms.nile.plan_tuple import Values
from nilometer.algorithms.nile.schedulers import InputTriggered, TimeProbing
from nilometer.algorithms.nile.stream_scan import StreamScan
from nilometer.model.time import FOREVER


class Approach(StrEnum):
    """How operators are scheduled, and how tuples end."""

    ITA = "ITA"
    """By input; expired tuples are found when an operator gets its next one (Nile section 6)."""
    TPA = "TPA"
    """By input, else by probing for the time (3.1)."""
    NTA = "NTA"
    """By input; scans put out a negative tuple for each one that expires (3.2)."""


class Arrival(NamedTuple):
    """A tuple of a stream that comes at a time of the clock."""

    clock: int
    stream: int
    time: int
    """Its timestamp; those of one stream do not decrease."""
    values: Values


class Pipeline:
    """A plan that runs.

    Its clock, in microseconds, jumps to the next arrival when there is nothing to do, and moves
    by the time that a meter (nanoseconds) shows for each step of an operator.
    """

    def __init__(
        self, answer: Answer, approach: Approach, meter: Callable[[], int] = thread_time_ns
    ) -> None:
        self.operators = _below(answer)
        """From scans to the answer."""
        self.clock = 0.0
        self.worked = 0.0
        """How much of the time it worked (microseconds)."""
        self.clocks: list[float] = []
        """When each change of the answer came out."""
        self._answer = answer
        self._meter = meter
        self._scans = [one for one in self.operators if isinstance(one, StreamScan)]
        several = len({window for scan in self._scans for window in scan.windows}) > 1
        for scan in self._scans:
            scan.start(emits_negatives=approach is Approach.NTA, stamps=several)
        scheduler = TimeProbing if approach is Approach.TPA else InputTriggered
        self._scheduler: InputTriggered = scheduler(self.operators)
        for operator in self.operators:
            operator.open()
            self._scheduler.pass_on(operator)

    @property
    def changes(self) -> list[Change]:
        """The answer so far, in the order in which it came out."""
        return self._answer.changes

    def replay(self, arrivals: Iterable[Arrival]) -> None:
        """Take in arrivals, in the order of their clocks, and work until nothing is to be done."""
        for arrival in arrivals:
            while self.clock < arrival.clock and self.step():
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
        """Work until nothing is to be done."""
        while self.step():
            pass

    def step(self) -> bool:
        """Let one operator run; whether any could."""
        began = self._meter()
        done = self._scheduler.step()
        spent = (self._meter() - began) / 1000
        self.clock += spent
        self.worked += spent
        if len(self.clocks) < len(self._answer.changes):
            self.clocks += [self.clock] * (len(self._answer.changes) - len(self.clocks))
        return done

    def finish(self) -> None:
        """Learn that all streams have ended: everything expires, under every approach."""
        self.run()
        self._scheduler = TimeProbing(self.operators)
        for scan in self._scans:
            scan.reach(FOREVER)
        for operator in self.operators:
            self._scheduler.pass_on(operator)
        self.run()


def _below(operator: Operator) -> list[Operator]:
    """An operator and all below it, those before it."""
    below = [one for child in operator.children for one in _below(child)]
    return [*below, operator]
