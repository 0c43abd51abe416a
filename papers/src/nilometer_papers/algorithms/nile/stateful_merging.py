"""Stateful operators with two inputs."""

from __future__ import annotations

from nilometer_papers.algorithms.nile.merging import Merging
from nilometer_papers.algorithms.nile.stateful import Stateful


class StatefulMerging(Merging, Stateful):
    """An operator that stores tuples of two inputs."""

    def step(self) -> bool:
        done = False
        while (side := self.next_side()) is not None:
            self.process(self.queues[side].popleft(), side)
            done = True
        return done
