"""Frequent sets of letters among hits: the maximal ones, the closed ones, or all."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.table_function import Numbers

WORK: Final = 5e8
"""The number of additions spent on finding sets: about a second."""
_TOGETHER: Final = 256
"""So many sets are examined at a time."""


_PRICE_OF_ONE: Final = 50
"""The cost in additions of checking whether a set has a letter,"""
_PRICE: Final = 1e5
"""and of examining a set."""
CountedSet: TypeAlias = tuple[tuple[int, ...], int]
"""Ascending letters, and the number of segments that have them."""


class SetKind(StrEnum):
    """Which of the frequent sets are searched for."""

    MAXIMAL = "maximal"
    """Sets without a frequent superset."""
    CLOSED = "closed"
    """Sets without a superset that is as frequent."""
    ALL = "all"


@dataclass(frozen=True)
class FrequentSets:
    """The sets that were found."""

    sets: list[CountedSet]
    complete: bool
    """Whether these are all. If not, a single set may not be of the wanted kind."""


@dataclass(frozen=True, order=True)
class _Node:
    """A set still to be extended: a set of the hits in `rows`, plus one letter."""

    rank: tuple[int, int, int]
    letter: int = field(compare=False)
    letters: tuple[int, ...] = field(compare=False)
    rows: Bools = field(compare=False)


class SetSearch:
    """Finds sets of letters (columns of `has`) that hits (its rows), each with a count, contain.

    Closed sets are extended so that each is visited once (prefix-preserving closure extension: Uno,
    Asai, Uchida, Arimura: LCM, FIMI 2003), the longest first.
    """

    def __init__(self, has: Bools, counts: Int64s, least: int, wanted: SetKind) -> None:
        self._groups = _alike(has, wanted)
        self._sizes = np.array([len(group) for group in self._groups], np.int64)
        self._has: Numbers = has[:, [group[0] for group in self._groups]].astype(np.float64)
        self._counts: Numbers = counts.astype(np.float64)
        self._least, self._wanted = least, wanted
        self._met = 0
        self._open: list[_Node] = []

    def run(self, work: float = WORK) -> FrequentSets:
        """All non-empty sets that at least so many segments have, within the limit of work."""
        sets: list[CountedSet] = []
        longest: CountedSet = ((), 0)
        self._open = [_Node((0, 0, 0), -1, (), np.ones(len(self._counts), np.bool_))]
        while self._open:
            node = heapq.heappop(self._open)
            letters, rows, supports = self._look(node)
            current = (self._all_letters(letters), int(self._counts @ rows))
            further = supports >= self._least
            further[list(letters)] = False
            if letters and not (self._wanted is SetKind.MAXIMAL and further.any()):
                sets.append(current)
            longest = max(longest, current, key=lambda one: len(one[0]))
            further[: node.letter + 1] = False
            for begin in range(0, int(further.sum()), _TOGETHER):
                more = np.flatnonzero(further)[begin : begin + _TOGETHER]
                self._extend(letters, rows, supports, more)
                work -= len(more) * self._has.shape[1] * (int(rows.sum()) + _PRICE_OF_ONE)
            work -= _PRICE
            if work < 0 and longest[0] and self._open:
                return FrequentSets(sets or [longest], False)
        return FrequentSets(sets, True)

    def _all_letters(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(letter for one in groups for letter in self._groups[one]))

    def _look(self, node: _Node) -> tuple[tuple[int, ...], Bools, Numbers]:
        """The letters of a set, the hits that have it, and its support with each further letter."""
        rows = node.rows
        if node.letter >= 0:
            rows = rows & (self._has[:, node.letter] > 0)
        supports = (self._counts * rows) @ self._has
        if self._wanted is SetKind.ALL:
            return node.letters, rows, supports
        closure = np.flatnonzero(supports == self._counts @ rows)
        return tuple(closure.tolist()), rows, supports

    def _extend(
        self, letters: tuple[int, ...], rows: Bools, supports: Numbers, more: Int64s
    ) -> None:
        """Queue the sets with one more letter."""
        lengths = np.full(len(more), len(letters) + 1)
        if self._wanted is not SetKind.ALL:
            inside = self._has[rows]
            having = inside[:, more] * self._counts[rows, np.newaxis]
            closures = having.T @ inside == supports[more, np.newaxis]
            lengths = closures @ self._sizes
            closures[:, list(letters)] = False
            firsts = np.where(closures.any(axis=1), closures.argmax(axis=1), more)
            keep = firsts >= more
            more, lengths = more[keep], lengths[keep]
        for letter, length in zip(more.tolist(), lengths.tolist(), strict=True):
            self._met += 1
            rank = (-length, -int(supports[letter]), self._met)
            # A closed set can be derived from its hits: no need to keep its many letters.
            kept_letters = (*letters, letter) if self._wanted is SetKind.ALL else ()
            heapq.heappush(self._open, _Node(rank, letter, kept_letters, rows))


def _alike(has: Bools, wanted: SetKind) -> list[list[int]]:
    """Groups of letters that the same hits have: a closed set has all of a group, or none."""
    if wanted is SetKind.ALL:
        return [[letter] for letter in range(has.shape[1])]
    groups: dict[bytes, list[int]] = {}
    for letter, column in enumerate(np.packbits(has, axis=0).T):
        groups.setdefault(column.tobytes(), []).append(letter)
    return list(groups.values())
