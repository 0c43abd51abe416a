"""Ward's method for weighted points.

scikit-learn and scipy have it for points of equal weight, where this gives the same groups.
"""

from __future__ import annotations

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.table_function import Numbers


def group_by_ward(
    weights: Int64s, places: Numbers, limit: int, apart: float | None = None
) -> Int64s:
    """The group of each point, numbered from 0 in the order of the first point of each.

    While there are more than `limit` groups, the two whose merging increases the sum of squared
    distances from the centres least are merged (Ward, JASA 58, 1963). Then, while the centres of
    two groups are nearer than `apart`, the nearest two are merged.
    """
    groups = _Groups(weights, places)
    while groups.number > limit:
        groups.join(*_least(groups.costs))
    while apart is not None and groups.number > 1:
        away = groups.squared_distances()
        one, other = _least(away)
        if away[one, other] >= apart**2:
            break
        groups.join(one, other)
    return np.unique(groups.labels, return_inverse=True)[1]


class _Groups:
    """Groups, the cost of merging each pair, and their members.

    A group is identified by its first point.
    """

    def __init__(self, weights: Int64s, places: Numbers) -> None:
        self.number = len(weights)
        self.labels: Int64s = np.arange(self.number)
        self._weights = weights.astype(np.float64)
        away = np.zeros((self.number, self.number))
        for one, place in enumerate(places):
            away[one, one:] = away[one:, one] = squared_distances(places[one:], place)
        self.costs: Numbers = away * self._pair_weights()
        np.fill_diagonal(self.costs, np.inf)

    def squared_distances(self) -> Numbers:
        """The squared distances between the centres of all groups."""
        return self.costs / self._pair_weights()

    def join(self, one: int, other: int) -> None:
        """Merge two groups, by the formula of Lance and Williams for Ward's method."""
        weights, costs = self._weights, self.costs
        a, b = weights[one], weights[other]
        joined = (a + weights) * costs[one] + (b + weights) * costs[other]
        joined = (joined - weights * costs[one, other]) / (a + b + weights)
        # A cost made negative by rounding would be a squared distance without a root.
        joined = np.maximum(joined, 0.0)
        joined[[one, other]] = np.inf
        weights[one] = a + b
        costs[one] = costs[:, one] = joined
        costs[other] = costs[:, other] = np.inf
        self.labels[self.labels == other] = one
        self.number -= 1

    def _pair_weights(self) -> Numbers:
        weights = self._weights
        pair_weights: Numbers = np.multiply.outer(weights, weights) / np.add.outer(weights, weights)
        return pair_weights


def squared_distances(places: Numbers, item: Numbers) -> Numbers:
    """The squared Euclidean distances of points from an item.

    Computed from differences, in the same order on any number of cores: never by BLAS.
    """
    away = places - item
    squares: Numbers = np.einsum("ij,ij->i", away, away)
    return squares


def _least(costs: Numbers) -> tuple[int, int]:
    """The position of the smallest cost; of equal ones, the first."""
    one, other = divmod(int(np.argmin(costs)), len(costs))
    return min(one, other), max(one, other)
