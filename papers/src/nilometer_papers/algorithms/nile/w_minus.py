"""W-MINUS, with duplicates: max(0, s - r) copies (Nile section 4.3, Algorithm 4.2, and 4.6)."""

from __future__ import annotations

from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple
from nilometer_papers.algorithms.nile.set_operator import (
    SetOperator,
    count_down,
    in_table,
    put_in,
    take_out,
)


class WMinus(SetOperator):
    """Emits tuples of S as long as their values occur more often in S than in R.

    W-DISTINCT after it makes it free of duplicates. Steps 5 and 31 are corrected.
    """

    def ends_in_s(self, ended: Held, time: int, was_negative: bool) -> None:
        """Steps 2 to 11."""
        values = ended.values
        count_down(self.f_s, values)
        if in_table(self.o_s, ended):
            take_out(self.o_s, ended)
            if was_negative:
                self.output.append(PlanTuple(ended, time, -1))
            return
        take_out(self.h_s, ended)
        if self.f_s[values] >= self.f_r[values]:
            self.invalidate_oldest(values, time)

    def ends_in_r(self, ended: Held, time: int) -> None:
        """Steps 12 to 19."""
        values = ended.values
        count_down(self.f_r, values)
        if self.f_s[values] > self.f_r[values]:
            self.put_out_newest(values, time)

    def new_in_s(self, new: PlanTuple) -> None:
        """Steps 21 to 27."""
        values = new.held.values
        self.f_s[values] += 1
        if self.f_s[values] > self.f_r[values]:
            put_in(self.o_s, new.held)
            self.output.append(new)
        else:
            put_in(self.h_s, new.held)

    def new_in_r(self, new: PlanTuple) -> None:
        """Steps 28 to 35."""
        values = new.held.values
        self.f_r[values] += 1
        if self.f_s[values] >= self.f_r[values]:
            self.invalidate_oldest(values, new.time)
