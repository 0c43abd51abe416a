"""Micro-clusters are grouped by Ward's method, each with the weight of its items.

scikit-learn and scipy know Ward's method for single items, all of one weight; where all
micro-clusters are single items, theirs and this agree.
"""

from __future__ import annotations

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.micro_clusters import squared_distances
from nilometer.mining.table_function import Numbers


def group_micro_clusters(
    numbers: Int64s, centres: Numbers, most: int, apart: float | None
) -> Int64s:
    """The group of each, a number from 0.

    While there are more than `most` groups, the two are joined that raise the sum of squared
    distances from the centres least (Ward, JASA 58, 1963). Then, while the centres of two groups
    are nearer than `apart`, the nearest two are joined.
    """
    groups = _Groups(numbers, centres)
    while len(groups.alive) > most:
        groups.join(*_least(groups.costs))
    while apart is not None and len(groups.alive) > 1:
        away = groups.squared_distances()
        one, other = _least(away)
        if away[one, other] >= apart**2:
            break
        groups.join(one, other)
    return np.unique(groups.labels, return_inverse=True)[1]


class _Groups:
    """Groups, what it would cost to join two of them, and who is in which.

    A group has the place of its first member.
    """

    def __init__(self, numbers: Int64s, centres: Numbers) -> None:
        self.labels: Int64s = np.arange(len(numbers))
        self.alive = set(range(len(numbers)))
        self._weights = numbers.astype(np.float64)
        self.costs = np.array([squared_distances(centres, centre) for centre in centres])
        self.costs *= self._pair_weights()
        np.fill_diagonal(self.costs, np.inf)

    def squared_distances(self) -> Numbers:
        """Between the centres of all groups."""
        found: Numbers = self.costs / self._pair_weights()
        return found

    def join(self, one: int, other: int) -> None:
        """Make two groups one, by the formula of Lance and Williams for Ward's method."""
        weights, costs = self._weights, self.costs
        a, b = weights[one], weights[other]
        joined = (a + weights) * costs[one] + (b + weights) * costs[other]
        joined = (joined - weights * costs[one, other]) / (a + b + weights)
        # Rounding must not make a cost negative: then distances have no root.
        joined = np.maximum(joined, 0.0)
        joined[[one, other]] = np.inf
        weights[one] = a + b
        costs[one] = costs[:, one] = joined
        costs[other] = costs[:, other] = np.inf
        self.labels[self.labels == other] = one
        self.alive.discard(other)

    def _pair_weights(self) -> Numbers:
        weights = self._weights
        found: Numbers = np.multiply.outer(weights, weights) / np.add.outer(weights, weights)
        return found


def _least(costs: Numbers) -> tuple[int, int]:
    """The place of the smallest cost, the smaller index first."""
    one, other = divmod(int(np.argmin(costs)), len(costs))
    return min(one, other), max(one, other)
