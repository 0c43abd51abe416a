"""The base of all operators of a pipeline: FIFO queues, a parent, and a time (Nile 3.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.nile.operator_counters import OperatorCounters
from nilometer_papers.algorithms.nile.plan_tuple import PlanTuple


class Operator(ABC):
    """An operator; its children put tuples into its queues, in the order of their times."""

    def __init__(self, *children: Operator) -> None:
        self.children = children
        self.queues: tuple[deque[PlanTuple], ...] = tuple(deque() for _ in children)
        self.windows: tuple[int, ...] = tuple(w for child in children for w in child.windows)
        """The windows of the sources below, in the order of stamps."""
        self.output: deque[PlanTuple] = deque()
        """The queue of the parent."""
        self.counters = OperatorCounters()
        for queue, child in zip(self.queues, children, strict=True):
            child.output = queue

    def open(self) -> None:  # noqa: B027 (most have nothing to say)
        """Emit what has always held."""

    @property
    def next_end(self) -> int:
        """Nothing that it stores expires before this instant."""
        return FOREVER

    def probe(self) -> None:  # noqa: B027 (most store nothing)
        """Look for stored tuples that have expired by now."""

    @property
    def has_input(self) -> bool:
        """Whether a tuple is waiting."""
        return any(self.queues)

    @abstractmethod
    def step(self) -> bool:
        """Process waiting tuples as far as the order of time allows; return whether any was."""

    def get_time(self) -> int:
        """The paper's GetTime(): no tuple that is emitted later is older than this.

        An operator without state looks at its waiting tuples, then asks its children.
        """
        self.counters.probes += 1
        return self.input_time()

    def input_time(self) -> int:
        """No tuple that remains to be processed is older than this."""
        return min(
            queue[0].time if queue else child.get_time()
            for queue, child in zip(self.queues, self.children, strict=True)
        )
