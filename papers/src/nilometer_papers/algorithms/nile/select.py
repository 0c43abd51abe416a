"""Select: signs do not matter (Nile section 4.6)."""

from __future__ import annotations

from collections.abc import Callable

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Values


class Select(Operator):
    """Passes on the tuples that satisfy a predicate."""

    def __init__(self, child: Operator, predicate: Callable[[Values], bool]) -> None:
        super().__init__(child)
        self._predicate = predicate

    def step(self) -> bool:
        queue, predicate = self.queues[0], self._predicate
        self.counters.tuples += len(queue)
        done = bool(queue)
        self.output.extend([one for one in queue if predicate(one.held.values)])
        queue.clear()
        return done
