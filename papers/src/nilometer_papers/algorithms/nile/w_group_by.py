"""W-Group-By (Nile section 4.4, Algorithm 4.3, and 4.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.nile.aggregate_functions import FUNCTIONS, AggregateFunction
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values
from nilometer_papers.algorithms.nile.stateful import Stateful
from nilometer_papers.algorithms.nile.window_state import state_for

Aggregate = tuple[str, Callable[[Values], Any]]
"""A function by name, and what it is applied to."""


@dataclass(slots=True)
class GroupHandle:
    """GH: the current aggregates of a group, and the row that was emitted for them."""

    functions: list[AggregateFunction]
    size: int = 0
    row: Values | None = None


class WGroupBy(Stateful):
    """Emits a row for each group that has tuples, and a new one when its aggregates change.

    In the paper a newer row overrides the older one, and an empty group gets a row of NULLs. Here
    the older one is invalidated, and an empty group has no row, as in the relational query.
    Aggregates are updated with their tuples, so those are stored only to end with time.
    """

    def __init__(
        self, child: Operator, group: Callable[[Values], Values], aggregates: Sequence[Aggregate]
    ) -> None:
        super().__init__(child)
        self._group = group
        self._aggregates = aggregates
        self._handles: dict[Values, GroupHandle] = {}
        self._state = state_for(self.windows, self.counters)
        self.states = (self._state,)
        self.windows = ()  # Its rows do not end with time, but when they are invalidated.

    @property
    def stored(self) -> int:
        return len(self._state)

    def expire(self) -> None:
        for end, held in self._state.expire(self.local_clock):
            self._end(held, end)

    def add(self, new: PlanTuple, side: int) -> None:
        """Steps 14 to 21."""
        self.counters.lookups += 1
        values = new.held.values
        group = self._group(values)
        handle = self._handles.get(group)
        if handle is None:
            handle = self._handles[group] = self.new_handle()
        handle.size += 1
        for function, (_, argument) in zip(handle.functions, self._aggregates, strict=True):
            function.add(argument(values))
        self._state.add(new.held)
        self.put_out(group, handle, new.time)

    def invalidate(self, negative: PlanTuple, side: int) -> None:
        self._state.remove(negative.held)
        self._end(negative.held, negative.time)

    def new_handle(self) -> GroupHandle:
        """A group without tuples."""
        return GroupHandle([FUNCTIONS[name]() for name, _ in self._aggregates])

    def put_out(self, group: Values, handle: GroupHandle, time: int) -> None:
        """Emit the row of a group if it has changed, and an invalid tuple for the last one."""
        row = group + tuple([function.result() for function in handle.functions])
        if row == handle.row:
            return
        self.take_back(handle, time)
        handle.row = row
        self.output.append(PlanTuple(Held(FOREVER, row), time))

    def take_back(self, handle: GroupHandle, time: int) -> None:
        """Invalidate the row of a group."""
        if handle.row is not None:
            self.output.append(PlanTuple(Held(FOREVER, handle.row), time, -1))

    def became_empty(self, group: Values, handle: GroupHandle, time: int) -> None:
        """Steps 8 and 9: the last tuple of a group has ended."""
        self.take_back(handle, time)
        del self._handles[group]

    def _end(self, ended: Held, time: int) -> None:
        """Steps 2 to 11."""
        self.counters.lookups += 1
        values = ended.values
        group = self._group(values)
        handle = self._handles[group]
        handle.size -= 1
        for function, (_, argument) in zip(handle.functions, self._aggregates, strict=True):
            function.remove(argument(values))
        if handle.size:
            self.put_out(group, handle, time)
        else:
            self.became_empty(group, handle, time)
