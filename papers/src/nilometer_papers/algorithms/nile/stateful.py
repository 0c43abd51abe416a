"""The base of stateful operators: stored tuples, and a LocalClock that ends them (Nile 3.1.1)."""

from __future__ import annotations

from abc import abstractmethod

from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import PlanTuple
from nilometer_papers.algorithms.nile.window_state import WindowState


class Stateful(Operator):
    """An operator whose stored tuples expire as its LocalClock advances.

    The clock advances with every tuple that it processes, and, under TPA, when it probes.
    """

    def __init__(self, *children: Operator) -> None:
        super().__init__(*children)
        self.local_clock = EARLIEST
        self.states: tuple[WindowState, ...] = ()
        """The states that hold the expiring tuples."""

    @property
    def next_end(self) -> int:
        return min((state.next_end for state in self.states), default=FOREVER)

    @property
    @abstractmethod
    def stored(self) -> int:
        """How many tuples it stores."""

    @abstractmethod
    def expire(self) -> None:
        """Drop stored tuples that the LocalClock has passed, and emit what follows."""

    @abstractmethod
    def add(self, new: PlanTuple, side: int) -> None:
        """Process a positive tuple of one input."""

    @abstractmethod
    def invalidate(self, negative: PlanTuple, side: int) -> None:
        """Process a negative tuple of one input."""

    def step(self) -> bool:
        queue = self.queues[0]
        if not queue:
            return False
        while queue:
            self.process(queue.popleft(), 0)
        return True

    def process(self, one: PlanTuple, side: int) -> None:
        """Process a tuple of one input."""
        self.counters.tuples += 1
        if one.time > self.local_clock:
            self.local_clock = one.time
            self.expire()
        if one.sign > 0:
            self.add(one, side)
        else:
            self.invalidate(one, side)

    def probe(self) -> None:
        """Ask the children for their times, and expire by them (step 3 of the TPA-Scheduler)."""
        time = self.input_time()
        has_moved = time > self.local_clock
        self.local_clock = max(time, self.local_clock)
        if has_moved or self.next_end <= self.local_clock:
            self.expire()

    def get_time(self) -> int:
        """The LocalClock: a probe path ends here."""
        self.counters.probes += 1
        return self.local_clock
