"""What a hybrid join can join: equal keys of some streams, any condition for the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from nilometer_papers.algorithms.conditions import Condition, LinkedKeys, SameKey, Where
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


@dataclass(frozen=True)
class SharedKey:
    """A key that tuples of some streams have in common."""

    streams: frozenset[int]
    place: int | None = None
    """Where it is in the keys of tuples, if those are of several equalities."""

    def of(self, one: StreamTuple) -> Hashable:
        """Its value in a tuple of one of these streams."""
        if self.place is None:
            return one.key
        assert isinstance(one.key, tuple)
        value: Hashable = one.key[self.place]
        return value


def shared_keys(condition: Condition, streams: int) -> list[SharedKey]:
    """The keys by which tuples of this many streams can be looked up."""
    match condition:
        case SameKey():
            return [SharedKey(frozenset(range(streams)))]
        case EqualAmong():
            return [SharedKey(condition.streams)]
        case LinkedKeys():
            return [SharedKey(linked, place) for place, linked in enumerate(condition.links)]
    return []
