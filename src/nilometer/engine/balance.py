"""Keeps the buckets that queries share about equally busy, so that all cores of a cluster work.

Queries stay where their state is, until one bucket has so much to do that others wait for it
while another core has little to do. It is measured how long queries work; nothing is guessed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

ROUND: Final = 30.0
"""How long (seconds) queries are measured before some of them move."""
MOST_MOVES: Final = 16
"""How many queries may move after one round; each pauses for up to ten seconds."""
REST: Final = 300.0
"""How long (seconds) a query stays where it has moved to."""
_BUSY: Final = 0.5
"""A bucket that works for less than this share of the time keeps its queries."""
_GAIN: Final = 0.8
"""A query moves only if the bucket that it moves to then has at most this share of what the one
had that it leaves."""


@dataclass
class Balance:
    """Measures queries, and says which of them should move; used by one thread."""

    clock: Callable[[], float] = time.monotonic
    _seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """How long each query has worked in this round."""
    _moved: dict[str, float] = field(default_factory=dict)
    """When queries moved, of those that have lately."""

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def take(self, query: str, seconds: float) -> None:
        """Count the time that a query has worked."""
        self._seconds[query] += seconds

    @property
    def is_due(self) -> bool:
        """Whether a round is over."""
        return self.clock() - self._begun >= ROUND

    def moves(self, places: Mapping[str, int], buckets: int) -> dict[str, int]:
        """The queries that should move, with the buckets they move to; the next round begins.

        `places` are the buckets of the queries that run; they may move to the first `buckets`.
        """
        now = self.clock()
        length, self._begun = now - self._begun, now
        measured, self._seconds = self._seconds, defaultdict(float)
        self._moved = {query: at for query, at in self._moved.items() if now - at < REST}
        moves = _even_out(
            {query: measured[query] / length for query in places},
            places,
            buckets,
            frozenset(self._moved),
        )
        self._moved |= dict.fromkeys(moves, now)
        return moves


def _even_out(
    busy: Mapping[str, float], places: Mapping[str, int], buckets: int, resting: frozenset[str]
) -> dict[str, int]:
    """Move queries from the fullest bucket to the emptiest one while that helps."""
    moves = dict[str, int]()
    loads = dict.fromkeys([*range(buckets), *places.values()], 0.0)
    for query, bucket in places.items():
        loads[bucket] += busy[query]
    while len(moves) < MOST_MOVES:
        full = max(loads, key=lambda bucket: (loads[bucket], -bucket))
        empty = min(range(buckets), key=lambda bucket: (loads[bucket], bucket))
        room = _GAIN * loads[full] - loads[empty]
        may = [
            query
            for query, bucket in places.items()
            if bucket == full and 0 < busy[query] <= room and query not in {*resting, *moves}
        ]
        if not may or loads[full] < _BUSY:
            return moves
        half = (loads[full] - loads[empty]) / 2
        chosen = min(may, key=lambda query: abs(busy[query] - half))
        moves[chosen] = empty
        loads[full] -= busy[chosen]
        loads[empty] += busy[chosen]
    return moves
