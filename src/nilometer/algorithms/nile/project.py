"""Project, with duplicates: signs make no difference (Nile section 4.6)."""

from __future__ import annotations

from collections.abc import Callable

from nilometer.algorithms.nile.operator import Operator
from nilometer.algorithms.nile.plan_tuple import Held, PlanTuple, Values


class Project(Operator):
    """Passes on what a function makes of the values of each tuple."""

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
