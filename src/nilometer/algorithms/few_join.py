"""FEW-join: the forward evaluation of a uniform clique, with nested loops (SSDBM section 3.2)."""

from __future__ import annotations

from nilometer.algorithms.mw_join import MWJoin


class FEWJoin(MWJoin):
    """SSDBM's name for MW-join: the same modes, period, buffers and nested loops.

    The starting tuples bound the past that is kept, and the window after the oldest of them is
    the point up to which tuples that arrive need no test of time with those that are buffered.
    """
