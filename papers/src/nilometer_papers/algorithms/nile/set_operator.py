"""What W-MINUS and W-INTERSECT share: their tables, and the order in which tuples expire."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from itertools import groupby
from operator import attrgetter

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values
from nilometer_papers.algorithms.nile.stateful_merging import StatefulMerging
from nilometer_papers.algorithms.nile.window_state import state_for

Table = dict[Values, list[Held]]
_MIN_TS = attrgetter("min_ts")


class SetOperator(StatefulMerging):
    """Emits tuples of S, by how often their values occur in S and in R (Nile section 4.3)."""

    def __init__(self, s: Operator, r: Operator) -> None:
        super().__init__(s, r)
        self.windows = s.windows
        self.h_s: Table = {}
        """The tuples of S that are not in O_S."""
        self.o_s: Table = {}
        """The tuples of S that were emitted, and have neither expired nor been invalidated."""
        self.f_s: Counter[Values] = Counter()
        self.f_r: Counter[Values] = Counter()
        self.states = tuple(state_for(child.windows, self.counters) for child in self.children)

    @property
    def stored(self) -> int:
        return self.f_s.total() + self.f_r.total()

    @abstractmethod
    def new_in_s(self, new: PlanTuple) -> None:
        """Process a new tuple of S."""

    @abstractmethod
    def new_in_r(self, new: PlanTuple) -> None:
        """Process a new tuple of R."""

    @abstractmethod
    def ends_in_s(self, ended: Held, time: int, was_negative: bool) -> None:
        """Process a tuple of S that expired, or was invalidated."""

    @abstractmethod
    def ends_in_r(self, ended: Held, time: int) -> None:
        """Process a tuple of R that expired, or was invalidated."""

    def add(self, new: PlanTuple, side: int) -> None:
        self.counters.lookups += 2
        self.states[side].add(new.held)
        if side == 0:
            self.new_in_s(new)
        else:
            self.new_in_r(new)

    def invalidate(self, negative: PlanTuple, side: int) -> None:
        self.counters.lookups += 2
        self.states[side].remove(negative.held)
        if side == 0:
            self.ends_in_s(negative.held, negative.time, was_negative=True)
        else:
            self.ends_in_r(negative.held, negative.time)

    def expire(self) -> None:
        """Expire tuples of both inputs in the order in which they end."""
        expired = [
            (end, side, held)
            for side, state in enumerate(self.states)
            for end, held in state.expire(self.local_clock)
        ]
        if not expired:
            return
        self.counters.lookups += 2 * len(expired)
        expired.sort(key=lambda one: one[:2])
        for (end, side), group in groupby(expired, key=lambda one: one[:2]):
            ended = [held for _, _, held in group]
            if side == 0:
                self._expire_in_s(ended, end)
            else:
                for held in ended:
                    self.ends_in_r(held, end)

    def _expire_in_s(self, ended: list[Held], end: int) -> None:
        """Expire tuples of S that end at one instant, first those in O_S.

        They end by themselves in all operators above: none of them may be invalidated there.
        """
        others = []
        for held in ended:
            if in_table(self.o_s, held):
                self.ends_in_s(held, end, was_negative=False)
            else:
                others.append(held)
        for held in others:
            self.ends_in_s(held, end, was_negative=False)

    def put_out_newest(self, values: Values, time: int) -> None:
        """Move the newest tuple of H_S to O_S, and emit it."""
        newest = max(self.h_s[values], key=_MIN_TS)
        take_out(self.h_s, newest)
        put_in(self.o_s, newest)
        self.output.append(PlanTuple(newest, time))

    def invalidate_oldest(self, values: Values, time: int) -> None:
        """Move the oldest tuple of O_S back to H_S, and emit an invalid tuple for it."""
        oldest = min(self.o_s[values], key=_MIN_TS)
        take_out(self.o_s, oldest)
        put_in(self.h_s, oldest)
        self.output.append(PlanTuple(oldest, time, -1))


def count_down(frequencies: Counter[Values], values: Values) -> None:
    """Decrement a count; values that no longer occur are removed."""
    frequencies[values] -= 1
    if not frequencies[values]:
        del frequencies[values]


def in_table(table: Table, held: Held) -> bool:
    """Whether a table has a tuple."""
    return held in table.get(held.values, ())


def put_in(table: Table, held: Held) -> None:
    """Add a tuple to a table."""
    table.setdefault(held.values, []).append(held)


def take_out(table: Table, held: Held) -> None:
    """Remove a tuple from a table that has it."""
    bucket = table[held.values]
    bucket.remove(held)
    if not bucket:
        del table[held.values]
