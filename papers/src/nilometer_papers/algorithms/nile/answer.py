"""The end of a pipeline: the answer as changes, each from an instant on."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values
from nilometer_papers.algorithms.nile.stateful import Stateful
from nilometer_papers.algorithms.nile.window_state import state_for


class Change(NamedTuple):
    """A row that is added to the answer (+1) or removed from it (-1)."""

    values: Values
    instant: int
    """The instant from which the change holds."""
    sign: int


class Output(Operator):
    """The end of a pipeline as in the paper: what the top operator emits, without state.

    Nothing emits that a row ends with its window; this follows from its timestamps.
    """

    def __init__(self, child: Operator) -> None:
        super().__init__(child)
        self.changes: list[Change] = []
        """The changes in the order in which they were emitted."""
        self._held: Counter[Held] = Counter()

    def step(self) -> bool:
        queue = self.queues[0]
        if not queue:
            return False
        self.counters.tuples += len(queue)
        for held, time, sign in queue:
            self.changes.append(Change(held.values, time, sign))
            if held.min_ts != FOREVER:
                self._held[held] += sign
        queue.clear()
        return True

    @property
    def implied(self) -> list[Change]:
        """The ends of rows that follow from their timestamps."""
        ended = state_for(self.windows, self.counters) if self.windows else None
        if ended is None:
            return []
        for held in self._held.elements():
            ended.add(held)
        return [Change(held.values, end, -1) for end, held in ended.expire(FOREVER)]


class AnswerOperator(Stateful):
    """Stores the rows that end with time, and emits their ends: the paper's Stream C."""

    def __init__(self, child: Operator) -> None:
        super().__init__(child)
        self.changes: list[Change] = []
        """The changes in the order in which they were emitted."""
        self._state = state_for(self.windows, self.counters)
        self.states = (self._state,)

    @property
    def stored(self) -> int:
        return len(self._state)

    def expire(self) -> None:
        self.changes += [
            Change(held.values, end, -1) for end, held in self._state.expire(self.local_clock)
        ]

    def add(self, new: PlanTuple, side: int) -> None:
        self._state.add(new.held)
        self.changes.append(Change(new.held.values, new.time, 1))

    def invalidate(self, negative: PlanTuple, side: int) -> None:
        self._state.remove(negative.held)
        self.changes.append(Change(negative.held.values, negative.time, -1))

    def probe(self) -> None:
        """Nobody asks for its time: it probes only if it stores anything."""
        if len(self._state):
            super().probe()
