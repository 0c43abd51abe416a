"""Operators with two inputs process tuples in the order of maxTS (Nile sections 4.3, 4.5)."""

from __future__ import annotations

from nilometer_papers.algorithms.nile.operator import Operator


class Merging(Operator):
    """An operator with two inputs.

    While one queue is empty, its child is asked for its time, under every approach: our timestamps
    may be older than their arrival, so an empty queue has no information.
    """

    def __init__(self, first: Operator, second: Operator) -> None:
        super().__init__(first, second)
        self.asks = True
        """Whether to ask the child if a queue is empty; otherwise wait for the next tuple."""

    def next_side(self) -> int | None:
        """The side of the next tuple; None if not known yet."""
        first, second = self.queues
        if first and second:
            return 0 if first[0].time <= second[0].time else 1
        if not first and not second:
            return None
        if not self.asks:
            return None
        side = 0 if first else 1
        other_time = self.children[1 - side].get_time()
        return side if other_time >= self.queues[side][0].time else None
