"""W-DISTINCT: duplicate elimination over a window (Nile section 4.2, Algorithm 4.1, and 4.6)."""

from __future__ import annotations

from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values
from nilometer_papers.algorithms.nile.stateful import Stateful
from nilometer_papers.algorithms.nile.window_state import state_for


class WDistinct(Stateful):
    """Emits one of all stored tuples with the same values; when it ends, another replaces it."""

    def __init__(self, child: Operator) -> None:
        super().__init__(child)
        self._h: dict[Values, list[Held]] = {}
        """H: all tuples of the window."""
        self._dl: dict[Values, Held] = {}
        """DL: the tuples that were emitted as distinct."""
        self._state = state_for(self.windows, self.counters)
        self.states = (self._state,)

    @property
    def stored(self) -> int:
        return sum(len(duplicates) for duplicates in self._h.values())

    def expire(self) -> None:
        for end, held in self._state.expire(self.local_clock):
            self._end(held, end, was_negative=False)

    def add(self, new: PlanTuple, side: int) -> None:
        self.counters.lookups += 1
        values = new.held.values
        if values in self._h:
            self._h[values].append(new.held)
        else:
            self._h[values] = [new.held]
            self._dl[values] = new.held
            self.output.append(new)
        self._state.add(new.held)

    def invalidate(self, negative: PlanTuple, side: int) -> None:
        self._state.remove(negative.held)
        self._end(negative.held, negative.time, was_negative=True)

    def _end(self, ended: Held, time: int, was_negative: bool) -> None:
        """Steps 2 to 13: if the tuple represented its values, let the newest duplicate do so."""
        self.counters.lookups += 2
        duplicates = self._h[ended.values]
        duplicates.remove(ended)
        heir = duplicates[-1] if duplicates else None
        if heir is None:
            del self._h[ended.values]
        if self._dl[ended.values] != ended or heir == ended:
            return
        if was_negative:
            self.output.append(PlanTuple(ended, time, -1))
        if heir is None:
            del self._dl[ended.values]
        else:
            self._dl[ended.values] = heir
            self.output.append(PlanTuple(heir, time))
