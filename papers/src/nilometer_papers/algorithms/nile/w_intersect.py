"""W-INTERSECT, with duplicates: min(s, r) copies (named in Nile section 4.3, by its cases)."""

from __future__ import annotations

from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple
from nilometer_papers.algorithms.nile.set_operator import (
    SetOperator,
    count_down,
    in_table,
    put_in,
    take_out,
)


class WIntersect(SetOperator):
    """Emits as many tuples of S as their values occur in both S and R.

    The paper gives no algorithm; this one has the tables and steps of W-MINUS. W-DISTINCT after it
    makes it free of duplicates.
    """

    def ends_in_s(self, ended: Held, time: int, was_negative: bool) -> None:
        """If it was emitted and R still has a partner for another tuple, emit that."""
        values = ended.values
        count_down(self.f_s, values)
        if in_table(self.h_s, ended):
            take_out(self.h_s, ended)
            return
        take_out(self.o_s, ended)
        if was_negative:
            self.output.append(PlanTuple(ended, time, -1))
        if self.f_s[values] >= self.f_r[values]:
            self.put_out_newest(values, time)

    def ends_in_r(self, ended: Held, time: int) -> None:
        """If a tuple of S has lost its partner, invalidate one."""
        values = ended.values
        count_down(self.f_r, values)
        if self.f_s[values] > self.f_r[values]:
            self.invalidate_oldest(values, time)

    def new_in_s(self, new: PlanTuple) -> None:
        """If R has a spare partner, emit it."""
        values = new.held.values
        self.f_s[values] += 1
        if self.f_s[values] <= self.f_r[values]:
            put_in(self.o_s, new.held)
            self.output.append(new)
        else:
            put_in(self.h_s, new.held)

    def new_in_r(self, new: PlanTuple) -> None:
        """If S has a spare tuple, emit its newest."""
        values = new.held.values
        self.f_r[values] += 1
        if self.f_r[values] <= self.f_s[values]:
            self.put_out_newest(values, new.time)
