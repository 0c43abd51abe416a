"""Patterns of a period that a series often follows, at some steps of the period but not all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Self

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.frequent_sets import WORK, CountedSet, SetKind, SetSearch
from nilometer.mining.hit_set import Codes
from nilometer.mining.segment_counts import SegmentCounts
from nilometer.mining.symbols import (
    NOTHING,
    Alphabet,
    FirstSeen,
    codes_in,
    encode,
    load_alphabet,
)
from nilometer.mining.table_function import MiningError, Saved

_RUN: Final = 4
"""So many equal symbols in a row are written as one, with a count."""

_CELLS: Final = 1 << 20
"""So many steps are arranged in segments at a time."""

_UNCLEAR: Final = re.compile(r'^$|[\s"×*]')


@dataclass(frozen=True)
class Pattern:
    """A symbol, or None for any, at each step of a period."""

    symbols: tuple[str | None, ...]
    support: int
    """The minimum number of segments that follow it."""
    missed: int
    """How many more may follow it: 0 unless there were too many distinct segments to keep."""
    segments: int
    """The number of segments."""
    complete: bool
    """Whether all patterns were examined, not only the longest."""

    @property
    def length(self) -> int:
        """The number of steps with a symbol."""
        return sum(symbol is not None for symbol in self.symbols)

    @property
    def confidence(self) -> float:
        """The share of segments that follow it."""
        return self.support / self.segments

    @property
    def text(self) -> str:
        """The symbols, * for any; four or more in a row are written with a count: *×10."""
        runs = [(word, len(list(run))) for word, run in groupby(map(_word, self.symbols))]
        return " ".join(f"{word}×{n}" if n >= _RUN else " ".join([word] * n) for word, n in runs)


def _word(symbol: str | None) -> str:
    """A symbol in a pattern's text; ambiguous ones are quoted."""
    if symbol is None:
        return "*"
    return json.dumps(symbol, ensure_ascii=False) if _UNCLEAR.search(symbol) else symbol


class PartialPatterns:
    """Mines the patterns of a period in segments of that many samples, as they arrive.

    It counts each symbol at each step, and keeps the distinct segments with their counts, at most
    `hits`: the max-subpattern hit set (Han, Dong, Yin: Efficient mining of partial periodic
    patterns in time series database, ICDE 1999), kept for all symbols, so that any of them may
    become frequent later, and parts can be merged (Aref, Elfeky, Elmagarmid: Incremental,
    online, and merge mining of partial periodic patterns in time-series databases, TKDE 2004).

    >>> mined = PartialPatterns(period=3, confidence=0.75)
    >>> mined.add(list("abc" "abd" "abc" "xbc"))
    >>> [(one.text, one.support) for one in mined.patterns()]
    [('a b *', 3), ('* b c', 3)]
    """

    def __init__(
        self, period: int, confidence: float, symbols: Alphabet | None = None, *, hits: int = 1000
    ) -> None:
        self.period, self.confidence, self.hits = period, confidence, hits
        self.symbols: Alphabet = FirstSeen() if symbols is None else symbols
        self._counts = SegmentCounts(period, confidence, hits)
        self._ends: tuple[int, int] | None = None
        self._open = (np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def segments(self) -> int:
        """The number of complete segments in which something is known."""
        return self._counts.segments

    def add(self, values: Any) -> None:
        """Add the next samples, one step apart."""
        codes = encode(self.symbols, values)
        start = self._next()
        self._add_codes(np.arange(start, start + len(codes)), codes)

    def add_at(self, positions: Int64s, values: Any) -> None:
        """Add the next samples at ascending steps; samples at other steps are unknown.

        Segments start at multiples of the period. One counts if it neither starts before the first
        sample nor ends after the last, and something in it is known.
        """
        steps = np.asarray(positions, np.int64)
        if (np.diff(steps) < 1).any() or (len(steps) and steps[0] < self._next(int(steps[0]))):
            raise MiningError("the positions of samples must ascend")
        self._add_codes(steps, encode(self.symbols, values))

    def merge(self, other: PartialPatterns) -> None:
        """Add the samples of another, which follow directly, as if they had been added here."""
        if (other.period, other.confidence) != (self.period, self.confidence):
            raise MiningError("parts with another period or confidence cannot be merged")
        start, theirs = self._next(), (0, -1) if other._ends is None else other._ends
        if start % self.period or theirs[0] % self.period:
            raise MiningError("parts can be merged only where a segment ends")
        codes = codes_in(self.symbols, other.symbols)
        self._counts.merge(other._counts, codes, len(self.symbols.names))
        moved = start - theirs[0]
        self._open = (other._open[0] + moved, codes[other._open[1]])
        if other._ends is not None:
            self._ends = (start if self._ends is None else self._ends[0], theirs[1] + moved)

    def forget(self, values: Any) -> None:
        """Remove the first segments, given their samples again, one step apart."""
        codes = encode(self.symbols, values)
        if len(codes) % self.period:
            raise MiningError(
                "only whole segments can be forgotten",
                detail=f"got {len(codes)} samples, and the period is {self.period}",
            )
        rows = codes.astype(np.int16).reshape(-1, self.period)
        self._counts.remove(rows, len(self.symbols.names))

    def patterns(
        self, wanted: SetKind | str = SetKind.MAXIMAL, most: int = 100, work: float = WORK
    ) -> list[Pattern]:
        """At most so many frequent patterns, ordered by length, then by frequency.

        If that is too much work, the longest found until then.
        """
        counts = self._counts
        frequent = counts.letters >= counts.frequent()
        letters = np.argwhere(frequent)
        hits = counts.hits.only(frequent)
        has = hits.hits[:, letters[:, 0]] == letters[:, 1]
        result = SetSearch(has, hits.counts, counts.frequent(), SetKind(wanted)).run(work)
        sets = [*result.sets, *_left_out(result.sets, counts.letters[frequent])]
        best = sorted(sets, key=lambda one: (-len(one[0]), -one[1], one[0]))[:most]
        return [
            self._pattern(letters[list(one)], support, result.complete) for one, support in best
        ]

    def save(self) -> Saved:
        """What `load` needs."""
        return self._counts.save() | {
            "period": self.period,
            "confidence": self.confidence,
            "hits": self.hits,
            "symbols": self.symbols.save(),
            "ends": self._ends,
            "positions": self._open[0],
            "codes": self._open[1],
        }

    @classmethod
    def load(cls, saved: Saved) -> Self:
        """Restore from a saved state, which can be reused."""
        symbols = load_alphabet(saved["symbols"])
        restored = cls(saved["period"], saved["confidence"], symbols, hits=saved["hits"])
        restored._counts = SegmentCounts.load(
            restored.period, restored.confidence, restored.hits, saved
        )
        restored._ends = None if saved["ends"] is None else (saved["ends"][0], saved["ends"][1])
        restored._open = (saved["positions"], saved["codes"])
        return restored

    def _next(self, first: int = 0) -> int:
        return first if self._ends is None else self._ends[1] + 1

    def _add_codes(self, positions: Int64s, codes: Int64s) -> None:
        if not len(positions):
            return
        last = int(positions[-1])
        first = int(positions[0]) if self._ends is None else self._ends[0]
        self._ends = (first, last)
        all_positions = np.concatenate([self._open[0], positions])
        all_codes = np.concatenate([self._open[1], codes])
        # Complete segments lie between these positions.
        edges = (-(-first // self.period) * self.period, (last + 1) // self.period * self.period)
        begin, end = np.searchsorted(all_positions, edges)
        whole = slice(begin, max(begin, end))
        for rows in cut_segments(all_positions[whole], all_codes[whole], self.period):
            self._counts.add(rows, len(self.symbols.names))
        self._open = (all_positions[whole.stop :], all_codes[whole.stop :])

    def _pattern(self, letters: Int64s, support: int, complete: bool) -> Pattern:
        symbols: list[str | None] = [None] * self.period
        for step, code in letters.tolist():
            symbols[step] = self.symbols.names[code]
        steps, codes = letters[:, 0], letters[:, 1]
        missed = self._counts.lost + int(self._counts.dropped[steps, codes].sum())
        if len(letters) == 1:
            support, missed = int(self._counts.letters[steps[0], codes[0]]), 0
        return Pattern(tuple(symbols), support, missed, self.segments, complete)


def _left_out(sets: Sequence[CountedSet], counts: Int64s) -> Iterator[CountedSet]:
    """Frequent letters, with exact counts, that are in no set because segments were dropped."""
    shown = {letter for one, _ in sets for letter in one}
    return (((n,), count) for n, count in enumerate(counts.tolist()) if n not in shown)


def cut_segments(positions: Int64s, codes: Int64s, period: int) -> Iterator[Codes]:
    """The codes of segments as rows, in batches; a step without a sample is unknown."""
    numbers, places = np.unique(positions // period, return_inverse=True)
    together = max(1, _CELLS // period)
    for start in range(0, len(numbers), together):
        count = min(together, len(numbers) - start)
        rows = np.full((count, period), NOTHING, np.int16)
        part = slice(*np.searchsorted(places, (start, start + count)))
        rows[places[part] - start, positions[part] % period] = codes[part]
        yield rows
