"""FEW-join: the forward evaluation of a uniform clique, with nested loops (SSDBM section 3.2)."""

from __future__ import annotations

from nilometer_papers.algorithms.mw_join import MWJoin


class FEWJoin(MWJoin):
    """SSDBM's name for MW-join: the same modes, period, buffers and nested loops.

    The starting tuples limit the past that is kept, and until the window after the oldest of them
    has passed, arriving tuples need no test of time against the buffered ones.
    """
