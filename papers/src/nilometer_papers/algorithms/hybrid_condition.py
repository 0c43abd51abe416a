"""The condition of a hybrid join: equal keys for some streams, any test for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nilometer_papers.algorithms.conditions import Condition, SameKey, Where
from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.stream_tuple import StreamTuple


@dataclass(frozen=True)
class EqualAmong:
    """Tuples of some streams have the same key; all other pairs pass a test (Golab section 3.5).

    The test receives the tuple of the earlier stream first.
    """

    streams: frozenset[int]
    test: Callable[[StreamTuple, StreamTuple], bool]

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """The candidates with the key of those of these streams that pass the test with others."""
        fitting = list(candidates)
        if fitting and fitting[0].stream in self.streams:
            equal = [one for one in partial if one.stream in self.streams]
            fitting = SameKey().among(equal, fitting) if equal else fitting
            partial = [one for one in partial if one.stream not in self.streams]
        return Where(self.test).among(partial, fitting)

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """The candidates all of whose members match the tuple."""
        return [candidate for candidate in candidates if self.among(candidate.members, (one,))]


def equal_streams(condition: Condition, streams: int) -> frozenset[int]:
    """The streams whose tuples all have one key."""
    if isinstance(condition, SameKey):
        return frozenset(range(streams))
    return condition.streams if isinstance(condition, EqualAmong) else frozenset()
