"""The search for the preferred match of a row pattern that begins with one row.

Depth first, in the order of preference: the first match found is the preferred one. A search asks
for what it cannot know by itself, the truth of conditions that look at the match so far, and is
sent the answer: so searches from many rows go on side by side, and their conditions are evaluated
together. What has failed once is not tried again: the same step at the same row with the same
marks fails again. The marks are all that conditions can see of the match so far.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Int64s
from nilometer.model.row_patterns import Op, PatternStep

MOST_TRIED: Final = 1_000_000
"""The maximum number of ways tried from one row, or from some side by side."""
_BLOCK: Final = 32
_TAKE, _SPLIT, _ABSENT, _MATCH = range(4)
_CODES: Final = {Op.TAKE: _TAKE, Op.SPLIT: _SPLIT, Op.ABSENT: _ABSENT, Op.MATCH: _MATCH}


class TooManyWaysError(PredicateError):
    """A pattern that can match in too many ways."""

    def __init__(self) -> None:
        super().__init__(
            "this pattern can match from one row in too many ways to try all of them",
            hint="shorten the time of WITHIN, or let the conditions of DEFINE exclude each other",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ()


class Outcome(IntEnum):
    """The outcome for a row at which a match may begin."""

    FAILED = 0
    MATCHED = 1
    OPEN = 2
    """Depends on later rows."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """Which rows of some variables are remembered: the first or last n."""

    variables: frozenset[int]
    last: bool
    count: int


Marks: TypeAlias = tuple[tuple[int, ...], ...]
"""For each of some `Tracked` the positions of its rows so far."""


class AskedRow(NamedTuple):
    """Whether the condition of a variable holds for a row, after a match so far."""

    variable: int
    place: int
    before: Marks
    marks: Marks
    """The marks if it does."""
    path: Sequence[int]
    """The variables of the rows before it; only valid until the answer arrives."""


@dataclass
class Tally:
    """The number of ways that searches running side by side have tried."""

    tried: int = 0


class SearchEnd(NamedTuple):
    """The end of a search."""

    outcome: Outcome
    path: tuple[int, ...] = ()
    """The variable of each row of the match."""
    known_at: int = 0
    """The instant at which this is known."""


Search: TypeAlias = Generator[AskedRow, bool, SearchEnd]


@dataclass(frozen=True, slots=True)
class Ground:
    """The rows in which a search runs."""

    symbols: Int64s
    """For each row a bit for every variable that it may match."""
    known_at: Int64s
    """The instant at which that is known."""
    limit: int
    """The position after the last row that can be seen."""
    over: int | None
    """When it is known that no further row can be part of the match; None: one may still arrive."""


@dataclass(frozen=True)
class Searcher:
    """Searches for matches of a program; asks about some variables, where their bit is set."""

    program: tuple[PatternStep, ...]
    asked: frozenset[int]
    tracked: tuple[Tracked, ...]
    whole: bool
    """Whether conditions see all rows of the match so far."""

    @cached_property
    def _steps(self) -> list[tuple[int, int, int, int, bool]]:
        """The program as numbers, and the steps where ways meet, which must be remembered."""
        ways = [0] * (len(self.program) + 1)
        for place, one in enumerate(self.program):
            for after in {one.first, one.second} if one.op is Op.SPLIT else {place + 1}:
                ways[after] += 1
        return [
            (_CODES[one.op], one.variable, one.first, one.second, ways[place] > 1)
            for place, one in enumerate(self.program)
        ]

    @cached_property
    def _marking(self) -> frozenset[int]:
        """The variables whose rows are remembered."""
        every = {step.variable for step in self.program} if self.whole else set()
        return frozenset(every.union(*(one.variables for one in self.tracked)))

    def search(self, ground: Ground, start: int, tally: Tally) -> Search:
        """The preferred match that begins with a row; an error if too many ways are tried."""
        steps, size, limit = self._steps, len(self.program), ground.limit
        symbols = ground.symbols[start : min(limit, start + _BLOCK)].tolist()
        marks: Marks = ((),) * (len(self.tracked) + self.whole)
        path: list[int] = []
        waiting: list[tuple[int, int, Marks, int]] = []
        tried: set[tuple[int, Marks]] = set()
        paths: dict[tuple[int, ...], int] = {}
        step, place, furthest, looked_over = 0, start, start, False
        while True:
            op, variable, first, second, meet = steps[step]
            going = True
            if meet:
                known = (place * size + step, marks)
                going = known not in tried
                tried.add(known)
                tally.tried += 1
            if going and op == _SPLIT:
                if second != first:
                    waiting.append((second, place, marks, len(path)))
                step = first
                continue
            if going and op == _MATCH:
                return SearchEnd(
                    Outcome.MATCHED, tuple(path), _known_at(ground, furthest, looked_over)
                )
            if going and place >= limit:
                if ground.over is None:
                    return SearchEnd(Outcome.OPEN)
                looked_over = True
                if op == _ABSENT:
                    step += 1
                    continue
            elif going:
                furthest = max(furthest, place)
                if place - start >= len(symbols):
                    symbols = ground.symbols[start : min(limit, 2 * place - start)].tolist()
                holds = bool(symbols[place - start] >> variable & 1)
                is_marked = holds and variable in self._marking
                after = self._marked(marks, variable, place, paths) if is_marked else marks
                if holds and variable in self.asked:
                    holds = yield AskedRow(variable, place, marks, after, path)
                if holds is (op == _TAKE):
                    if holds:
                        path.append(variable)
                        marks = after
                        step += 1
                    place += 1
                    continue
            if not waiting:
                return SearchEnd(Outcome.FAILED, (), _known_at(ground, furthest, looked_over))
            if tally.tried > MOST_TRIED:
                raise TooManyWaysError
            step, place, marks, length = waiting.pop()
            del path[length:]

    def _marked(
        self, marks: Marks, variable: int, place: int, paths: dict[tuple[int, ...], int]
    ) -> Marks:
        """The marks after a row matches a variable; a whole path is marked by its number."""
        after = tuple(
            _remembered(one, mark, place) if variable in one.variables else mark
            for one, mark in zip(self.tracked, marks, strict=False)
        )
        if not self.whole:
            return after
        return (*after, (paths.setdefault((*marks[-1], variable), len(paths)),))


def _known_at(ground: Ground, furthest: int, looked_over: bool) -> int:
    """The instant at which everything seen is known."""
    known_at = int(ground.known_at[furthest])
    return max(known_at, ground.over) if looked_over and ground.over is not None else known_at


def _remembered(tracked: Tracked, places: tuple[int, ...], place: int) -> tuple[int, ...]:
    if tracked.last:
        return (*places, place)[-tracked.count :]
    return places if len(places) == tracked.count else (*places, place)
