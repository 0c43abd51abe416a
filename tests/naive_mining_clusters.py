"""Clusters by definition: every group knows its items, and everything is recomputed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

Items = npt.NDArray[np.float64]
Group = list[int]
"""The numbers of items."""


@dataclass(frozen=True)
class NaiveClusters:
    """At most this many micro-clusters, grouped into at most this many clusters."""

    items: Items
    most: int
    clusters: int
    apart: float | None = None

    def groups(self, micro: Sequence[Group] | None = None) -> list[Group]:
        """The clusters, by their first items."""
        return sorted(sorted(one) for one in self._grouped(micro or self.micro()))

    def micro(self, numbers: Sequence[int] | None = None) -> list[Group]:
        """The micro-clusters of items that come one by one."""
        return self.condensed(
            [[n] for n in (range(len(self.items)) if numbers is None else numbers)]
        )

    def condensed(self, parts: Sequence[Group]) -> list[Group]:
        """The micro-clusters of parts that come one by one."""
        groups: list[Group] = []
        for part in parts:
            if len(groups) == self.most:
                groups = self._joined(groups, self.most // 2)
            groups.append(part)
        return groups

    def scatter(self, group: Group) -> float:
        """The sum of the squared distances from the centre."""
        chosen = self.items[group]
        return float(((chosen - chosen.mean(axis=0)) ** 2).sum())

    def _joined(self, groups: list[Group], limit: int) -> list[Group]:
        groups = list(groups)
        while len(groups) > limit:
            one, other = min(
                combinations(range(len(groups)), 2),
                key=lambda pair: (
                    self.scatter(groups[pair[0]] + groups[pair[1]])
                    - self.scatter(groups[pair[0]])
                    - self.scatter(groups[pair[1]])
                ),
            )
            groups[one] = groups[one] + groups.pop(other)
        return groups

    def _grouped(self, micro: Sequence[Group]) -> list[Group]:
        groups = self._joined(list(micro), self.clusters)
        while self.apart is not None and len(groups) > 1:
            one, other = min(
                combinations(range(len(groups)), 2), key=lambda p: self._away(groups, p)
            )
            if self._away(groups, (one, other)) >= self.apart:
                break
            groups[one] = groups[one] + groups.pop(other)
        return groups

    def _away(self, groups: Sequence[Group], pair: tuple[int, int]) -> float:
        centres = [self.items[groups[place]].mean(axis=0) for place in pair]
        return float(np.sqrt(((centres[0] - centres[1]) ** 2).sum()))
