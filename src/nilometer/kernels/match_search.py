"""The search for the preferred match of a row pattern that begins with one row.

Depth first, in the order of preference: the first match that is found is the one. A search asks
for what it cannot know by itself, the truth of conditions that look at the match so far, and is
sent the answer: so searches from many rows go on side by side, and their conditions are evaluated
together. What has failed once is not tried again: the same step at the same row with the same
marks fails again. The marks are all that conditions can see of the match so far.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Int64s
from nilometer.model.row_patterns import Op, Step

MOST_TRIED: Final = 1_000_000
"""So many steps are tried from one row."""


class Outcome(IntEnum):
    """What has come of a row at which a match may begin."""

    FAILED = 0
    MATCHED = 1
    OPEN = 2
    """Later rows will tell."""


class Seen(IntEnum):
    """What there is to be seen at a place."""

    ROW = 0
    OVER = 1
    """No row, and none will come that can be part of the match."""
    UNKNOWN = 2


class Asked(NamedTuple):
    """Whether the condition of a variable holds for a row, after a match so far."""

    variable: int
    place: int
    marks: Marks
    path: Sequence[int]
    """The variables of the rows before it; it is only good until the answer comes."""


class Found(NamedTuple):
    """The end of a search."""

    outcome: Outcome
    path: tuple[int, ...] = ()
    """The variable of each row of the match."""
    told: int = 0
    """When this is known."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """Which rows of some variables are remembered: the first or last so many."""

    variables: frozenset[int]
    last: bool
    count: int


Marks: TypeAlias = tuple[tuple[int, ...], ...]
"""For each of some `Tracked` the places of its rows so far."""
Search: TypeAlias = Generator[Asked, bool, Found]


@dataclass(frozen=True)
class Ground:
    """The rows in which a search goes on."""

    symbols: Int64s
    """For each row a bit for every variable that it may be a row of."""
    see: Callable[[int, int], tuple[Seen, int]]
    """What is at a place, for a match that must end by an instant, and when that is known."""


@dataclass(frozen=True)
class Searcher:
    """Looks for matches of a program; some variables are asked for, where their bit is set."""

    program: tuple[Step, ...]
    asked: frozenset[int]
    tracked: tuple[Tracked, ...]
    whole: bool
    """Whether conditions see all rows of the match so far."""

    def search(self, ground: Ground, start: int, until: int) -> Search:
        """The preferred match that begins with a row and ends by an instant."""
        program, symbols, see = self.program, ground.symbols, ground.see
        path: list[int] = []
        marks: Marks = ((),) * (len(self.tracked) + self.whole)
        waiting: list[tuple[int, int, Marks, int]] = [(0, start, marks, 0)]
        tried: set[tuple[int, int, Marks]] = set()
        paths: dict[tuple[int, ...], int] = {}
        told = -(1 << 62)
        while waiting:
            step, place, marks, length = waiting.pop()
            del path[length:]
            while (step, place, marks) not in tried:
                tried.add((step, place, marks))
                now = program[step]
                if now.op is Op.SPLIT:
                    if now.second != now.first:
                        waiting.append((now.second, place, marks, len(path)))
                    step = now.first
                    continue
                if now.op is Op.MATCH:
                    return Found(Outcome.MATCHED, tuple(path), told)
                seen, at = see(place, until)
                if seen is Seen.UNKNOWN:
                    return Found(Outcome.OPEN)
                told = max(told, at)
                if seen is Seen.OVER:
                    if now.op is Op.TAKE:
                        break
                    step += 1
                    continue
                variable = now.variable
                holds = bool(symbols[place] >> variable & 1)
                after = marks
                if holds and (self.tracked or self.whole):
                    after = self._marked(marks, variable, place, paths)
                if holds and variable in self.asked:
                    holds = yield Asked(variable, place, after, path)
                if holds is (now.op is Op.ABSENT):
                    break
                if now.op is Op.TAKE:
                    path.append(variable)
                    marks = after
                    step += 1
                place += 1
            if len(tried) > MOST_TRIED:
                raise too_many()
        return Found(Outcome.FAILED, (), told)

    def _marked(
        self, marks: Marks, variable: int, place: int, paths: dict[tuple[int, ...], int]
    ) -> Marks:
        """The marks once a row is one of a variable; a whole path is marked by its number."""
        after = tuple(
            _remembered(one, mark, place) if variable in one.variables else mark
            for one, mark in zip(self.tracked, marks, strict=False)
        )
        if not self.whole:
            return after
        return (*after, (paths.setdefault((*marks[-1], variable), len(paths)),))


def _remembered(tracked: Tracked, places: tuple[int, ...], place: int) -> tuple[int, ...]:
    if tracked.last:
        return (*places, place)[-tracked.count :]
    return places if len(places) == tracked.count else (*places, place)


def too_many() -> PredicateError:
    return PredicateError(
        f"a match of this pattern was looked for in {MOST_TRIED:,} ways from one row",
        hint="shorten the time of WITHIN, or let DEFINE exclude each other",
    )
