"""W-UNION, with duplicates: both inputs in the order of time (Nile section 4.3)."""

from __future__ import annotations

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.nile.merging import Merging
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple


class WUnion(Merging):
    """Passes on the tuples of both inputs; later operators expire them.

    W-DISTINCT after it makes it free of duplicates.
    """

    def step(self) -> bool:
        done = False
        while (side := self.next_side()) is not None:
            self.counters.tuples += 1
            self.output.append(self._stamped(self.queues[side].popleft(), side))
            done = True
        return done

    def _stamped(self, one: PlanTuple, side: int) -> PlanTuple:
        """If windows differ, a tuple has no timestamps of the sources of the other input."""
        held = one.held
        if len(held.stamps) < len(self.children[side].windows):
            return one
        none = (FOREVER,) * len(self.children[1 - side].windows)
        stamps = held.stamps + none if side == 0 else none + held.stamps
        return one._replace(held=Held(held.min_ts, held.values, stamps))
