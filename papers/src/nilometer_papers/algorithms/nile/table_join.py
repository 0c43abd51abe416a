"""Join with a static table, as in Q2 and Q3 (Nile section 6): signs do not matter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values


class TableJoin(Operator):
    """Joins each tuple with the rows of a table that have its key; rows of tables never end."""

    def __init__(
        self,
        child: Operator,
        key: Callable[[Values], Hashable],
        rows: Iterable[Values],
        row_key: Callable[[Values], Hashable],
    ) -> None:
        super().__init__(child)
        self._key = key
        self._rows: dict[Hashable, list[Values]] = {}
        for row in rows:
            self._rows.setdefault(row_key(row), []).append(row)

    def step(self) -> bool:
        queue, rows, key = self.queues[0], self._rows, self._key
        self.counters.tuples += len(queue)
        self.counters.lookups += len(queue)
        done = bool(queue)
        self.output.extend(
            [
                PlanTuple(Held(held.min_ts, held.values + row, held.stamps), time, sign)
                for held, time, sign in queue
                for row in rows.get(key(held.values), ())
            ]
        )
        queue.clear()
        return done
