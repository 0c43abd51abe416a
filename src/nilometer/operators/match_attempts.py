"""Attempts to match from rows on: by the automaton, or by searches that are asked side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.match_automaton import FRESH, Automaton, Followed, Track, may_begin
from nilometer.kernels.match_search import Asked, Found, Ground, Outcome, Search, Searcher, Seen
from nilometer.kernels.row_errors import Rows, passing
from nilometer.model.time import FOREVER
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.match_slots import asked_column, near
from nilometer.operators.match_spec import Matching
from nilometer.operators.ordered_rows import OrderedRows

_SIDE_BY_SIDE: Final = 4096
"""So many searches go on at a time."""
_UNSEEN: Final = -1
"""The symbol of a row whose conditions are not known yet."""


@dataclass
class Begun:
    """What is known of rows as the first of matches."""

    NAMES: ClassVar = ("symbols", "states", "seen", "told")
    AT_FIRST: ClassVar = (_UNSEEN, FRESH, 0, 0)

    is_open: Bools
    """Whether a match may begin there of which nothing has been said yet."""
    symbols: Int64s
    """For each row a bit for every variable whose condition may hold."""
    states: Int64s
    """Outcomes, or where the automaton is."""
    seen: Int64s
    told: Int64s
    """When the outcome is known."""

    @property
    def columns(self) -> tuple[Int64s, ...]:
        return (self.symbols, self.states, self.seen, self.told)

    @property
    def outcomes(self) -> Int64s:
        """`Outcome` of each row."""
        settled = (self.states == Outcome.FAILED) | (self.states == Outcome.MATCHED)
        return np.where(settled, self.states, int(Outcome.OPEN))


class Attempts:
    """Attempts at all rows of a period."""

    def __init__(
        self,
        matching: Matching,
        rows: OrderedRows,
        begun: Begun,
        automaton: Automaton,
        frontier: int,
        ended: bool,
        store: ChunkStore,
    ) -> None:
        self._matching = matching
        self._rows = rows
        self._begun = begun
        self._automaton = automaton
        self._frontier, self._ended = frontier, ended
        self._store = store
        known = rows.lasts + 1 if ended else np.maximum(rows.lasts + 1 - matching.ahead, 0)
        self._known = np.maximum(known, rows.starts)
        ahead = np.minimum(rows.places + matching.ahead, rows.lasts)
        self._told = rows.times[ahead]
        self._paths: dict[int, tuple[int, ...]] = {}
        self._searcher = Searcher(
            matching.program, matching.asked, matching.tracked, matching.sees_all
        )

    def settle(self) -> None:
        """Find out what comes of all open rows, as far as that is known."""
        self._see_rows()
        begun = self._begun
        fails = begun.is_open & (begun.states == FRESH) & (begun.symbols != _UNSEEN)
        fails &= ~may_begin(self._matching.program, begun.symbols)
        begun.states[fails] = int(Outcome.FAILED)
        begun.told[fails] = self._told[fails]
        tried = np.flatnonzero(
            begun.is_open & (begun.outcomes == Outcome.OPEN) & (begun.symbols != _UNSEEN)
        )
        if not len(tried):
            return
        if not self._matching.asked:
            self._follow(tried)
            return
        for first in range(0, len(tried), _SIDE_BY_SIDE):
            some = tried[first : first + _SIDE_BY_SIDE].tolist()
            for start, found in zip(some, self._search(some), strict=True):
                if found.outcome is not Outcome.OPEN:
                    begun.states[start] = int(found.outcome)
                    begun.told[start] = found.told
                    self._paths[start] = found.path

    def path_of(self, start: int) -> tuple[int, ...]:
        """The variables of the rows of the match that begins with a row."""
        if start not in self._paths:
            [found] = self._search([start])
            assert found.outcome is Outcome.MATCHED
            self._paths[start] = found.path
        return self._paths[start]

    def _see_rows(self) -> None:
        """Ask the conditions of single rows that can be asked now."""
        rows, symbols = self._rows, self._begun.symbols
        places = np.flatnonzero((symbols == _UNSEEN) & (rows.places < self._known))
        if not len(places):
            return
        bits = np.zeros(len(places), np.int64)
        for number, one in enumerate(self._matching.conditions):
            holds = np.ones(len(places), np.bool_)
            if one.plain is not None:
                given = [near(slot, rows, places) for slot in one.near]
                holds = passing(one.plain, Rows(given, len(places)), one.text)
            bits |= holds.astype(np.int64) << number
        symbols[places] = bits

    def _follow(self, tried: Int64s) -> None:
        begun, rows = self._begun, self._rows
        track = Track(
            begun.symbols,
            rows.times,
            self._told,
            self._known,
            rows.lasts + 1,
            self._frontier,
            self._ended,
        )
        ones = Followed(tried, begun.states[tried], begun.seen[tried], begun.told[tried])
        self._automaton.follow(track, ones, self._matching.within)
        begun.states[tried], begun.seen[tried] = ones.states, ones.seen
        begun.told[tried] = ones.told

    def _search(self, starts: Sequence[int]) -> list[Found]:
        """What searches from some rows find; conditions of all are asked together."""
        done: dict[int, Found] = {}
        going: dict[int, Search] = {}
        asked: dict[int, Asked] = {}
        for start in starts:
            search = going[start] = self._searcher.search(
                Ground(self._begun.symbols, self._see_from(start)), start, self._until(start)
            )
            self._advance(start, search, None, asked, done)
        while asked:
            answers = self._answer(asked)
            asked = {}
            for start, answer in answers.items():
                self._advance(start, going[start], answer, asked, done)
        return [done[start] for start in starts]

    def _advance(
        self,
        start: int,
        search: Search,
        answer: bool | None,
        asked: dict[int, Asked],
        done: dict[int, Found],
    ) -> None:
        try:
            asked[start] = next(search) if answer is None else search.send(answer)
        except StopIteration as stopped:
            done[start] = stopped.value

    def _answer(self, asked: dict[int, Asked]) -> dict[int, bool]:
        """The truth of conditions, those of each variable together."""
        answers: dict[int, bool] = {}
        for variable in {one.variable for one in asked.values()}:
            starts = [start for start, one in asked.items() if one.variable == variable]
            mine = [asked[start] for start in starts]
            condition = self._matching.conditions[variable]
            given: list[pa.Array] = [
                asked_column(slot, mine, starts, self._searcher.tracked, self._rows, self._store)
                for slot in condition.slots
            ]
            assert condition.rest is not None
            holds = passing(condition.rest, Rows(given, len(mine)), condition.text)
            answers.update(zip(starts, holds.tolist(), strict=True))
        return answers

    def _until(self, start: int) -> int:
        within = self._matching.within
        return FOREVER if within is None else int(self._rows.times[start]) + within

    def _see_from(self, start: int) -> _Sight:
        return _Sight(
            self._rows.times,
            self._told,
            int(self._known[start]),
            int(self._rows.lasts[start]) + 1,
            self._frontier,
            self._ended,
        )


@dataclass(frozen=True, slots=True)
class _Sight:
    """What can be seen from a row of its partition."""

    times: Int64s
    told: Int64s
    known: int
    end: int
    frontier: int
    ended: bool

    def __call__(self, place: int, until: int) -> tuple[Seen, int]:
        if place < self.end and self.times[place] <= until:
            if place >= self.known:
                return Seen.UNKNOWN, 0
            return Seen.ROW, int(self.told[place])
        if until < self.frontier or self.ended:
            return Seen.OVER, until if until < FOREVER else int(self.told[self.end - 1])
        return Seen.UNKNOWN, 0
