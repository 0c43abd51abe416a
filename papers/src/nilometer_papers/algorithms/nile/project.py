"""Project, with duplicates: signs do not matter (Nile section 4.6)."""

from __future__ import annotations

from collections.abc import Callable

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values


class Project(Operator):
    """Passes on each tuple with its values transformed by a function."""

    def __init__(self, child: Operator, function: Callable[[Values], Values]) -> None:
        super().__init__(child)
        self._function = function

    def step(self) -> bool:
        queue, function = self.queues[0], self._function
        self.counters.tuples += len(queue)
        done = bool(queue)
        self.output.extend(
            [
                PlanTuple(Held(held.min_ts, function(held.values), held.stamps), time, sign)
                for held, time, sign in queue
            ]
        )
        queue.clear()
        return done
