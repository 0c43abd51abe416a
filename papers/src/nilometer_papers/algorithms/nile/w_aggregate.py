"""W-Aggregate: W-Group-By with a single group (Nile section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Values
from nilometer_papers.algorithms.nile.w_group_by import Aggregate, GroupHandle, WGroupBy


class WAggregate(WGroupBy):
    """Always emits one row: over an empty window, NULLs and counts of 0."""

    def __init__(self, child: Operator, aggregates: Sequence[Aggregate]) -> None:
        super().__init__(child, lambda _: (), aggregates)

    def open(self) -> None:
        handle = self._handles[()] = self.new_handle()
        self.put_out((), handle, EARLIEST)

    def became_empty(self, group: Values, handle: GroupHandle, time: int) -> None:
        self.put_out(group, handle, time)
