"""Row patterns whose conditions see rows only, as an automaton over all rows at once.

A state is the list of the steps at which a match that has begun may be, in the order of
preference, and whether one has been found that only these are preferred to. States and transitions
are made as they are needed (Cox, Regular Expression Matching: the Virtual Machine
Approach). Matches of many rows are followed side by side, one row at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.match_search import Outcome
from nilometer.model.row_patterns import Op, PatternStep
from nilometer.model.time import FOREVER

FRESH: Final = -1
"""The state of a row from which nothing has been tried yet."""
_FIRST: Final = 2
"""The first state that is neither FAILED nor MATCHED."""
MOST_STATES: Final = 1000
_MOST_PAIRS: Final = 1 << 22
_BLOCK: Final = 1024
_FEW: Final = 24
"""Up to this many matches are followed one by one."""


@dataclass
class FollowedMatches:
    """Matches that began with some rows: how far each is, and when its end is known."""

    starts: Int64s
    states: Int64s
    seen: Int64s
    """How many rows each has seen."""
    known_at: Int64s


@dataclass(frozen=True)
class Track:
    """The ordered rows in which matches are followed."""

    symbols: Int64s
    times: Int64s
    known_at: Int64s
    """The instant at which the condition of each row is known."""
    known: Int64s
    """For each row, the end of the rows in its partition whose conditions are known."""
    ends: Int64s
    """For each row, the end of its partition."""
    frontier: int
    """All rows before this instant have arrived."""
    ended: bool


class Automaton:
    """The states of a program that have been reached so far."""

    def __init__(self, program: tuple[PatternStep, ...]) -> None:
        self._program = program
        self.restore([])

    def restore(self, keys: Iterable[tuple[bool, tuple[int, ...]]]) -> None:
        """Restore exactly these states, in this order."""
        self._keys: list[tuple[bool, tuple[int, ...]]] = []
        self._numbers: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._codes: dict[int, int] = {}
        self._table = np.full((8, 8), FRESH, np.int64)
        for matched, steps in keys:
            self._number(matched, steps)

    @property
    def keys(self) -> list[tuple[bool, tuple[int, ...]]]:
        """The contents of the states, for `restore`."""
        return self._keys

    def follow(self, track: Track, open_ones: FollowedMatches, within: int | None) -> None:
        """Follow matches to their ends, or as far as rows are known."""
        states = open_ones.states
        states[states == FRESH] = self._number(*self._closure([0]))
        self._require_rows()
        active = np.flatnonzero(states >= _FIRST)
        until = _until(track, open_ones.starts, within)
        codes = self._coded(track.symbols)
        while len(active) > _FEW and codes is not None and self._is_small:
            active = self._step(track, codes, open_ones, until, active)
        for one in active:
            self._run(track, open_ones, until, int(one))

    @property
    def _is_small(self) -> bool:
        return (len(self._keys) + _FIRST) * len(self._codes) < _MOST_PAIRS

    def _coded(self, symbols: Int64s) -> Int64s | None:
        """Symbols as small numbers; None if there are too many of them."""
        values, inverse = np.unique(symbols, return_inverse=True)
        codes = [self._codes.setdefault(int(one), len(self._codes)) for one in values]
        if not self._is_small:
            return None
        wanted = max(len(self._codes), self._table.shape[1])
        if wanted > self._table.shape[1]:
            grown = np.full((len(self._table), 2 * wanted), FRESH, np.int64)
            grown[:, : self._table.shape[1]] = self._table
            self._table = grown
        return np.asarray(codes, np.int64)[inverse]

    def _step(
        self, track: Track, codes: Int64s, ones: FollowedMatches, until: Int64s, active: Int64s
    ) -> Int64s:
        """Advance matches by one row each; returns those that go on."""
        places = ones.starts[active] + ones.seen[active]
        ends = track.ends[ones.starts[active]]
        there = np.minimum(places, len(track.times) - 1)
        is_row = (places < ends) & (track.times[there] <= until[active])
        is_known = places < track.known[ones.starts[active]]
        is_over = ~is_row & ((until[active] < track.frontier) | track.ended)
        self._end(track, ones, until, active[is_over])
        going = active[is_row & is_known]
        places = places[is_row & is_known]
        before, codes = ones.states[going], codes[places]
        after = self._table[before, codes]
        fresh = np.flatnonzero(after == FRESH)
        if len(fresh):
            symbols = track.symbols[places[fresh]]
            transitions = zip(
                before[fresh].tolist(), codes[fresh].tolist(), symbols.tolist(), strict=True
            )
            for state, code, symbol in set(transitions):
                next_state = self._after(state, symbol)
                self._require_rows()
                self._table[state, code] = next_state
            after = self._table[before, codes]
        ones.states[going] = after
        ones.seen[going] += 1
        ones.known_at[going] = track.known_at[places]
        left: Int64s = going[after >= _FIRST]
        return left

    def _require_rows(self) -> None:
        while len(self._keys) + _FIRST >= len(self._table):
            self._table = np.concatenate([self._table, np.full_like(self._table, FRESH)])

    def _end(self, track: Track, ones: FollowedMatches, until: Int64s, over: Int64s) -> None:
        """End matches that no further row can be part of."""
        for one in over:
            ones.states[one] = self._at_end(int(ones.states[one]))
            is_bounded = until[one] < FOREVER
            last = track.known_at[track.ends[ones.starts[one]] - 1]
            ones.known_at[one] = max(ones.known_at[one], until[one] if is_bounded else last)

    def _at_end(self, state: int) -> int:
        matched, steps = self._keys[state - _FIRST]
        is_absent = any(self._program[step].op is Op.ABSENT for step in steps)
        return int(Outcome.MATCHED if matched or is_absent else Outcome.FAILED)

    def _run(self, track: Track, ones: FollowedMatches, until: Int64s, one: int) -> None:
        """Follow a single match."""
        start, state = int(ones.starts[one]), int(ones.states[one])
        first = start + int(ones.seen[one])
        end = first + int(
            np.searchsorted(track.times[first : track.ends[start]], until[one], "right")
        )
        place, known = first, min(end, int(track.known[start]))
        while state >= _FIRST and place < known:
            for symbol in track.symbols[place : min(known, place + _BLOCK)].tolist():
                after = self._next.get((state, symbol))
                state = self._after(state, symbol) if after is None else after
                place += 1
                if state < _FIRST:
                    break
        if place > first:
            ones.known_at[one] = track.known_at[place - 1]
        ones.states[one], ones.seen[one] = state, place - start
        is_over = until[one] < track.frontier or track.ended
        if state >= _FIRST and place == end and is_over:
            self._end(track, ones, until, np.asarray([one], np.int64))

    def _after(self, state: int, symbol: int) -> int:
        """The state after a row."""
        known = self._next.get((state, symbol))
        if known is not None:
            return known
        matched, steps = self._keys[state - _FIRST]
        going: list[int] = []
        for step in steps:
            now = self._program[step]
            holds = bool(symbol >> now.variable & 1)
            if now.op is Op.ABSENT:
                going += [] if holds else [step]
            elif holds:
                going.append(step + 1)
        is_match, after = self._closure(going)
        number = self._number(matched or is_match, after)
        if len(self._next) > _MOST_PAIRS:
            self._next.clear()
        self._next[state, symbol] = number
        return number

    def _closure(self, steps: list[int]) -> tuple[bool, tuple[int, ...]]:
        """The state of a match that goes on at these steps; nothing less preferred than its end."""
        reached: list[int] = []
        tried: set[int] = set()
        waiting = steps[::-1]
        while waiting:
            step = waiting.pop()
            if step in tried:
                continue
            tried.add(step)
            now = self._program[step]
            if now.op is Op.MATCH:
                return True, tuple(reached)
            if now.op is Op.SPLIT:
                waiting += [now.second, now.first]
            else:
                reached.append(step)
        return False, tuple(reached)

    def _number(self, matched: bool, steps: tuple[int, ...]) -> int:
        if not steps:
            return int(Outcome.MATCHED if matched else Outcome.FAILED)
        key = (matched, steps)
        if key not in self._numbers:
            self._numbers[key] = _FIRST + len(self._keys)
            self._keys.append(key)
        return self._numbers[key]


def _until(track: Track, starts: Int64s, within: int | None) -> Int64s:
    if within is None:
        return np.full(len(starts), FOREVER)
    return track.times[starts] + within


def may_begin(program: tuple[PatternStep, ...], symbols: Int64s) -> Bools:
    """Which rows can be the first of a match."""
    _, steps = Automaton(program)._closure([0])
    wanted = np.int64(0)
    for step in steps:
        if program[step].op is Op.TAKE:
            wanted |= np.int64(1) << np.int64(program[step].variable)
    begins: Bools = (symbols & wanted) != 0
    return begins
