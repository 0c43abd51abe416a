"""Attempts to match from given rows on: by the automaton, or by searches run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.match_automaton import FRESH, Automaton, FollowedMatches, Track, may_begin
from nilometer.kernels.match_search import (
    MOST_TRIED,
    AskedRow,
    Ground,
    Marks,
    Outcome,
    Search,
    SearchEnd,
    Searcher,
    Tally,
    TooManyWaysError,
)
from nilometer.kernels.row_errors import Rows, passing
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.match_slots import AskedRows, asked_column, near
from nilometer.operators.match_spec import Matching, Navigation
from nilometer.operators.ordered_rows import OrderedRows

_SIDE_BY_SIDE: Final = 4096
"""The number of searches that run at a time."""
_MOST_ROUNDS: Final = 10_000
"""How often a search may ask for conditions that are not looked up yet."""
_FIRST_BLOCK: Final = 4
_LONGEST_BLOCK: Final = 1024
_UNSEEN: Final = -1
"""The symbol of a row whose conditions are not known yet."""


@dataclass
class MatchStarts:
    """What is known about rows as the first of a match."""

    NAMES: ClassVar = ("symbols", "states", "seen", "known_at")
    AT_FIRST: ClassVar = (_UNSEEN, FRESH, 0, 0)

    is_open: Bools
    """Whether a match that has not been emitted yet may begin there."""
    symbols: Int64s
    """For each row a bit for every variable whose condition may hold."""
    states: Int64s
    """Outcomes, or states of the automaton."""
    seen: Int64s
    known_at: Int64s
    """The instants at which the outcomes are known."""

    @property
    def columns(self) -> tuple[Int64s, ...]:
        return (self.symbols, self.states, self.seen, self.known_at)

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
        begun: MatchStarts,
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
        self._known_at = rows.times[ahead]
        self._paths: dict[int, tuple[int, ...]] = {}
        self._answers: dict[int, _ConditionAnswers] = {}
        self._searcher = Searcher(
            matching.program, matching.asked, matching.tracked, matching.sees_all
        )

    def settle(self) -> None:
        """Determine the outcome of all open rows, as far as it is known."""
        self._see_rows()
        begun = self._begun
        fails = begun.is_open & (begun.states == FRESH) & (begun.symbols != _UNSEEN)
        fails &= ~may_begin(self._matching.program, begun.symbols)
        begun.states[fails] = int(Outcome.FAILED)
        begun.known_at[fails] = self._known_at[fails]
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
            results = self._search(some)
            self._answers.clear()
            for start, end in zip(some, results, strict=True):
                if end.outcome is not Outcome.OPEN:
                    begun.states[start] = int(end.outcome)
                    begun.known_at[start] = end.known_at
                    self._paths[start] = end.path

    def path_of(self, start: int) -> tuple[int, ...]:
        """The variables of the rows of the match that begins with a row."""
        if start not in self._paths:
            [end] = self._search([start])
            assert end.outcome is Outcome.MATCHED
            self._paths[start] = end.path
        return self._paths[start]

    def _see_rows(self) -> None:
        """Evaluate the conditions of single rows that can be evaluated now."""
        rows, symbols = self._rows, self._begun.symbols
        places = np.flatnonzero((symbols == _UNSEEN) & (rows.places < self._known))
        if not len(places):
            return
        bits = np.zeros(len(places), np.int64)
        for number, one in enumerate(self._matching.conditions):
            holds = np.ones(len(places), np.bool_)
            if one.plain is not None:
                columns = [near(slot, rows, places) for slot in one.near]
                holds = passing(one.plain, Rows(columns, len(places)), one.text)
            bits |= holds.astype(np.int64) << number
        symbols[places] = bits

    def _follow(self, tried: Int64s) -> None:
        begun, rows = self._begun, self._rows
        track = Track(
            begun.symbols,
            rows.times,
            self._known_at,
            self._known,
            rows.lasts + 1,
            self._frontier,
            self._ended,
        )
        ones = FollowedMatches(tried, begun.states[tried], begun.seen[tried], begun.known_at[tried])
        self._automaton.follow(track, ones, self._matching.within)
        begun.states[tried], begun.seen[tried] = ones.states, ones.seen
        begun.known_at[tried] = ones.known_at

    def _search(self, starts: Sequence[int]) -> list[SearchEnd]:
        """The results of searches from some rows: side by side, or one by one if too many."""
        tally = Tally()
        try:
            return self._search_together(starts, tally)
        except TooManyWaysError:
            if len(starts) == 1 or tally.tried <= MOST_TRIED:
                raise
        return [end for start in starts for end in self._search_together([start], Tally())]

    def _search_together(self, starts: Sequence[int], tally: Tally) -> list[SearchEnd]:
        """The same; the conditions of all searches are evaluated together."""
        done: dict[int, SearchEnd] = {}
        rounds = 0
        going = {
            start: self._searcher.search(self._ground(start), start, tally) for start in starts
        }
        answers: dict[int, bool | None] = dict.fromkeys(starts)
        while answers:
            requests: dict[int, AskedRow] = {}
            for start, answer in answers.items():
                outcome = self._advance(start, going[start], answer)
                if isinstance(outcome, AskedRow):
                    requests[start] = outcome
                else:
                    done[start] = outcome
            self._look_up(requests)
            rounds += 1
            if rounds > _MOST_ROUNDS:
                raise TooManyWaysError
            answers = {start: self._answers[start].of(one) for start, one in requests.items()}
        return [done[start] for start in starts]

    def _advance(self, start: int, search: Search, answer: bool | None) -> AskedRow | SearchEnd:
        """Run a search until it is done, or asks for a condition not looked up yet."""
        try:
            request = next(search) if answer is None else search.send(answer)
            while (known := self._known_answer(start, request)) is not None:
                request = search.send(known)
        except StopIteration as stopped:
            end: SearchEnd = stopped.value
            return end
        return request

    def _known_answer(self, start: int, request: AskedRow) -> bool | None:
        answers = self._answers.get(start)
        return None if answers is None else answers.of(request)

    def _look_up(self, requests: dict[int, AskedRow]) -> None:
        """Evaluate conditions, those of each variable together."""
        for variable in {one.variable for one in requests.values()}:
            mine = {start: one for start, one in requests.items() if one.variable == variable}
            condition = self._matching.conditions[variable]
            assert condition.rest is not None
            blocks = [self._block(start, one) for start, one in mine.items()]
            look = AskedRows(list(mine), list(mine.values()), blocks, variable)
            columns: list[pa.Array] = [
                asked_column(slot, look, self._searcher.tracked, self._rows, self._store)
                for slot in condition.slots
            ]
            size = sum(map(len, blocks))
            holds = passing(condition.rest, Rows(columns, size), condition.text).tolist()
            for (start, one), block in zip(mine.items(), blocks, strict=True):
                passed, holds = holds[: len(block)], holds[len(block) :]
                answers = self._answers.setdefault(start, _ConditionAnswers())
                answers.begin(one, dict(zip(block.tolist(), passed, strict=True)))

    def _block(self, start: int, request: AskedRow) -> Int64s:
        """The row asked for, and those that follow if nothing else changes."""
        if not self._steady[request.variable]:
            return np.asarray([request.place], np.int64)
        answers = self._answers.get(start)
        length = _FIRST_BLOCK if answers is None else answers.next_length(request)
        end = min(self._ground(start).limit, request.place + length)
        bits = self._begun.symbols[request.place : end] >> request.variable & 1
        return request.place + np.flatnonzero(bits)

    @cached_property
    def _steady(self) -> list[bool]:
        """For each variable, whether rows in between do not change what its condition sees."""
        return [
            all(
                isinstance(slot, Navigation)
                and (number not in slot.variables or slot.is_near(number))
                for slot in one.slots
            )
            for number, one in enumerate(self._matching.conditions)
        ]

    def _ground(self, start: int) -> Ground:
        """The rows that can be seen from a row."""
        rows, within = self._rows, self._matching.within
        end, known = int(rows.lasts[start]) + 1, int(self._known[start])
        if within is None:
            over = int(self._known_at[end - 1]) if self._ended else None
            return Ground(self._begun.symbols, self._known_at, known, over)
        until = int(rows.times[start]) + within
        end = start + int(np.searchsorted(rows.times[start:end], until, "right"))
        is_over = (until < self._frontier or self._ended) and end <= known
        return Ground(
            self._begun.symbols, self._known_at, min(end, known), until if is_over else None
        )


@dataclass
class _ConditionAnswers:
    """The known answers of the condition that a search asked for last."""

    variable: int = -1
    before: Marks = ()
    length: int = 0
    places: dict[int, bool] = field(default_factory=dict)

    def of(self, request: AskedRow) -> bool | None:
        """The answer, if it has been looked up."""
        if request.variable != self.variable or request.before != self.before:
            return None
        return self.places.get(request.place)

    def begin(self, request: AskedRow, places: dict[int, bool]) -> None:
        """Replace the known answers by those for other rows."""
        self.length = self.next_length(request)
        self.variable, self.before, self.places = request.variable, request.before, places

    def next_length(self, request: AskedRow) -> int:
        """How many rows to look up: more if the same condition was asked for before."""
        if request.variable != self.variable or request.before != self.before:
            return _FIRST_BLOCK
        return min(2 * self.length, _LONGEST_BLOCK)
