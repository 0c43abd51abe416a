"""W-Join: the symmetric hash join of two windows (Nile sections 4.5 and 4.6)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values
from nilometer_papers.algorithms.nile.stateful_merging import StatefulMerging
from nilometer_papers.algorithms.nile.window_state import state_for

Key = Callable[[Values], Hashable]


class WJoin(StatefulMerging):
    """Joins each new tuple with the stored tuples of the other input that have its key.

    Expired tuples emit nothing: the window ends the results that they were part of, too. A negative
    tuple emits the results of its positive one again, as negative.
    """

    def __init__(self, first: Operator, second: Operator, keys: tuple[Key, Key]) -> None:
        super().__init__(first, second)
        self._keys = keys
        self._tables: tuple[dict[Hashable, list[Held]], ...] = ({}, {})
        self.states = tuple(state_for(child.windows, self.counters) for child in self.children)

    @property
    def stored(self) -> int:
        return sum(len(bucket) for table in self._tables for bucket in table.values())

    def expire(self) -> None:
        for table, state, key in zip(self._tables, self.states, self._keys, strict=True):
            for _, held in state.expire(self.local_clock):
                self._take_out(table, key(held.values), held)

    def add(self, new: PlanTuple, side: int) -> None:
        key = self._keys[side](new.held.values)
        self._tables[side].setdefault(key, []).append(new.held)
        self.states[side].add(new.held)
        self._join(new, side, key)

    def invalidate(self, negative: PlanTuple, side: int) -> None:
        key = self._keys[side](negative.held.values)
        self._take_out(self._tables[side], key, negative.held)
        self.states[side].remove(negative.held)
        self._join(negative, side, key)

    def _join(self, one: PlanTuple, side: int, key: Hashable) -> None:
        """Emit the results of a tuple, with its time and its sign."""
        self.counters.lookups += 1
        (min_ts, values, stamps), time, sign = one
        for other_ts, others, other_stamps in self._tables[1 - side].get(key, ()):
            first = min_ts if min_ts < other_ts else other_ts
            if side == 0:
                held = Held(first, values + others, stamps + other_stamps)
            else:
                held = Held(first, others + values, other_stamps + stamps)
            self.output.append(PlanTuple(held, time, sign))

    def _take_out(self, table: dict[Hashable, list[Held]], key: Hashable, held: Held) -> None:
        self.counters.lookups += 1
        bucket = table[key]
        bucket.remove(held)
        if not bucket:
            del table[key]
