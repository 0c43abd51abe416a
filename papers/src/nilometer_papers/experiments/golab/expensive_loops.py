"""Expensive predicates in for-loops: how often each order asks them (Golab section 5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from nilometer.model.join_cost import Order
from nilometer_papers.algorithms.conditions import SameKey
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.experiment import Setting
from nilometer_papers.experiments.golab.rates import run
from nilometer_papers.experiments.golab.workload import Workload


@dataclass
class AskedKeys:
    """The same key, and how often it was asked: in each window, and by matches of pairs."""

    windows: Counter[int] = field(default_factory=Counter)
    """Tuples of each window whose key was compared."""
    pairs: Counter[frozenset[int]] = field(default_factory=Counter)
    """Matches of which a further predicate of two streams would be asked."""

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """The candidates with the key of the combination."""
        tested = list(candidates)
        matches = SameKey().among(partial, tested)
        self.windows.update(one.stream for one in tested[:1] for _ in tested)
        for member in partial:
            self.pairs.update(frozenset({member.stream, one.stream}) for one in matches)
        return matches

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """The candidates with the key of the tuple."""
        return SameKey().combinations(one, candidates)


@dataclass(frozen=True)
class Asked:
    """What an order costs for each arriving tuple."""

    visited: float
    windows: Mapping[int, float]
    pairs: Mapping[frozenset[int], float]

    def with_dear_window(self, stream: int, cost: float) -> float:
        """If comparing a tuple of one window costs that much, and 1 elsewhere."""
        return sum(n * (cost if i == stream else 1) for i, n in self.windows.items())

    def with_predicate(self, pair: frozenset[int], cost: float) -> float:
        """If a further predicate of two streams, which all pass, costs that much."""
        return self.visited + cost * self.pairs.get(pair, 0)


def asked_by_order(work: Sequence[Workload], setting: Setting) -> dict[Order, Asked]:
    """For every global order, counts per arriving tuple."""
    arrivals = sum(len(one.measured) for one in work)
    by_order = {}
    orders = list(permutations(range(work[0].task.streams)))
    for order in setting.progress.track(orders, "orders"):
        keys = AskedKeys()

        def make(task: JoinTask, order: Order = order, keys: AskedKeys = keys) -> EagerNLJ:
            return EagerNLJ(JoinTask(task.network, keys), order)

        visited = run(make, work).visited
        windows = {i: n / arrivals for i, n in keys.windows.items()}
        pairs = {pair: n / arrivals for pair, n in keys.pairs.items()}
        by_order[order] = Asked(visited, windows, pairs)
    return by_order
