"""Join conditions: which tuples match, apart from time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.stream_tuple import StreamTuple


class Condition(Protocol):
    """A condition that holds for a combination if it holds for all its pairs."""

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """The candidates, all of one stream, that match a combination whose members match."""

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """The candidates, whose members match each other, that match a tuple of another stream."""


@dataclass(frozen=True)
class SameKey:
    """All tuples have the same key: the papers' equi-join on a common attribute.

    Hash joins need this one.
    """

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """The candidates with the key of the combination."""
        key = partial[0].key
        return [one for one in candidates if one.key == key]

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """The candidates with the key of the tuple."""
        key = one.key
        return [candidate for candidate in candidates if candidate.key == key]


@dataclass(frozen=True)
class LinkedKeys:
    """Keys are sequences with a place for each equality, None where a stream has no part."""

    links: tuple[frozenset[int], ...]
    """For each equality, the streams that have a part in it."""

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """The candidates whose values equal those of the combination wherever both have one."""
        wanted: dict[int, object] = {}
        for member in partial:
            wanted.update(_values(member))
        return [
            one
            for one in candidates
            if all(wanted.get(place, value) == value for place, value in _values(one))
        ]

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """The candidates all of whose members match the tuple."""
        return [candidate for candidate in candidates if self.among(candidate.members, (one,))]


@dataclass(frozen=True)
class Where:
    """A test of any two tuples: theta-joins, similar objects; the earlier stream comes first."""

    test: Callable[[StreamTuple, StreamTuple], bool]

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """The candidates that pass the test with every member of the combination."""
        return [one for one in candidates if all(self._holds(member, one) for member in partial)]

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """The candidates all of whose members match the tuple."""
        return [candidate for candidate in candidates if self.among(candidate.members, (one,))]

    def _holds(self, member: StreamTuple, candidate: StreamTuple) -> bool:
        if member.stream < candidate.stream:
            return self.test(member, candidate)
        return self.test(candidate, member)


@dataclass(frozen=True)
class Always:
    """All tuples match: time alone decides."""

    def among(
        self, partial: Sequence[StreamTuple], candidates: Iterable[StreamTuple]
    ) -> list[StreamTuple]:
        """All candidates."""
        return list(candidates)

    def combinations(self, one: StreamTuple, candidates: Iterable[MTuple]) -> list[MTuple]:
        """All candidates."""
        return list(candidates)


def _values(one: StreamTuple) -> list[tuple[int, object]]:
    assert isinstance(one.key, tuple)
    return [(place, value) for place, value in enumerate(one.key) if value is not None]
