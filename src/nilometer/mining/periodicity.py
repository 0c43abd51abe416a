"""Periods of symbols and of a whole series, in one pass, without a given period."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.lagged_pairs import LaggedPairs, count_pairs
from nilometer.mining.period_peaks import Period, best_first, find_periods, lags_of
from nilometer.mining.symbols import (
    NOTHING,
    Alphabet,
    FirstSeen,
    codes_in,
    encode,
    load_alphabet,
)
from nilometer.mining.table_function import MiningError, Saved

_BLOCK: Final = 4096
"""So many samples are convolved at a time, or as many as there are lags."""
_DENSE: Final = 1 << 20
"""So many steps are laid out at a time, even if there are few samples in them."""


class Periodicity:
    """Counts how often symbols recur after each lag up to `longest`, and finds the periods.

    Values are strings, or numbers divided into levels: symbols=Levels([…]). The size of the state
    depends only on `longest` and the number of symbols. Elfeky, Aref, Elmagarmid: Using convolution
    to mine obscure periodic patterns in one pass (EDBT 2004).

    >>> periodicity = Periodicity(longest=20)
    >>> periodicity.add(list("abcd" * 20))
    >>> [(one.period, one.symbol, one.confidence) for one in periodicity.periods()][:2]
    [(4, None, 1.0), (4, 'a', 1.0)]
    """

    def __init__(self, longest: int, symbols: Alphabet | None = None) -> None:
        self.longest = longest
        self.symbols: Alphabet = FirstSeen() if symbols is None else symbols
        # One lag more than asked for: a score is a peak compared with both its neighbours.
        self._lags = longest + 1
        self._pairs = LaggedPairs.none(0, self._lags)
        self._counts = np.zeros(0, np.int64)
        self._known = 0
        self._ends: tuple[int, int] | None = None
        self._head, self._tail = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[Int64s] = []

    @property
    def span(self) -> int:
        """The number of steps from the first sample to the last, inclusive."""
        return 0 if self._ends is None else self._ends[1] - self._ends[0] + 1

    def add(self, values: Any) -> None:
        """Add the next samples, one step apart."""
        codes = encode(self.symbols, values)
        start = self._next()
        self._add_codes(np.arange(start, start + len(codes)), codes)

    def add_at(self, positions: Int64s, values: Any) -> None:
        """Add the next samples at ascending steps; samples at other steps are unknown."""
        steps = np.asarray(positions, np.int64)
        if (np.diff(steps) < 1).any() or (len(steps) and steps[0] < self._next(steps[0])):
            raise MiningError("the positions of samples must ascend")
        self._add_codes(steps, encode(self.symbols, values))

    def merge(self, other: Periodicity) -> None:
        """Add the samples of another, which follow directly, as if they had been added here."""
        if other.longest != self.longest:
            raise MiningError("parts with other lags cannot be merged")
        codes = codes_in(self.symbols, other.symbols)
        if other._ends is None:
            return
        self._convolve()
        other._convolve()
        head, tail, start = codes[other._head], codes[other._tail], self._next()
        self._pairs.add(self._count_pairs(self._tail, head, len(self._tail)))
        self._pairs.add(other._pairs.recoded(codes))
        self._count_symbols(np.repeat(codes[: len(other._counts)], other._counts))
        self._known = self._known + other._known
        self._head = np.concatenate([self._head, head])[: self._lags]
        self._tail = np.concatenate([self._tail, tail])[-self._lags :]
        self._ends = (start if self._ends is None else self._ends[0], start + other.span - 1)

    def periods(self, most: int = 10, least: float = 0.1) -> list[Period]:
        """The periods, the most prominent first, and multiples of others last.

        There are at most `most` for each symbol and for the whole series (symbol None), with a
        prominence of at least `least`. A period fits twice into the samples seen.
        """
        self._convolve()
        longest = min(self.longest, self.span // 2)
        if longest < 2:
            return []
        rows = lags_of(self._pairs, self._counts, self._known, self.symbols.names, longest)
        return best_first([one for lags in rows for one in find_periods(lags, most, least)])

    def save(self) -> Saved:
        """What `load` needs."""
        self._convolve()
        return {
            "longest": self.longest,
            "symbols": self.symbols.save(),
            "matches": self._pairs.matches,
            "begins": self._pairs.begins,
            "both": self._pairs.known,
            "counts": self._counts,
            "known": self._known,
            "ends": self._ends,
            "head": self._head,
            "tail": self._tail,
        }

    @classmethod
    def load(cls, saved: Saved) -> Self:
        """Restore from a saved state, which can be reused."""
        restored = cls(saved["longest"], load_alphabet(saved["symbols"]))
        counted = (saved["matches"].copy(), saved["begins"].copy(), saved["both"].copy())
        restored._pairs = LaggedPairs(*counted)
        restored._counts, restored._known = saved["counts"].copy(), saved["known"]
        restored._ends = None if saved["ends"] is None else (saved["ends"][0], saved["ends"][1])
        restored._head, restored._tail = saved["head"], saved["tail"]
        return restored

    def _next(self, first: int = 0) -> int:
        return first if self._ends is None else self._ends[1] + 1

    def _add_codes(self, positions: Int64s, codes: Int64s) -> None:
        if not len(codes):
            return
        first = int(positions[0])
        places = close_gaps(positions, self._next(first) - 1, self._lags)
        self._ends = (first if self._ends is None else self._ends[0], int(positions[-1]))
        self._count_symbols(codes[codes >= 0])
        self._known += int((codes != NOTHING).sum())
        steps = int(places[-1]) + 1
        for start in range(0, steps, _DENSE):
            end = min(start + _DENSE, steps)
            rows = slice(*np.searchsorted(places, (start, end)))
            self._wait(lay_out(places[rows] - start, codes[rows], end - start))

    def _count_symbols(self, codes: Int64s) -> None:
        counts = np.bincount(codes[codes >= 0], minlength=len(self.symbols.names))
        counts[: len(self._counts)] += self._counts
        self._counts = counts

    def _wait(self, codes: Int64s) -> None:
        """Queue codes until there are enough for an efficient convolution."""
        if len(self._head) < self._lags:
            self._head = np.concatenate([self._head, codes])[: self._lags]
        self._waiting.append(codes)
        if sum(map(len, self._waiting)) >= max(_BLOCK, self._lags):
            self._convolve()

    def _convolve(self) -> None:
        """Count the pairs whose second sample is queued."""
        if not self._waiting:
            return
        codes, size = np.concatenate(self._waiting), max(_BLOCK, self._lags)
        self._waiting = []
        for start in range(0, len(codes), size):
            block = codes[start : start + size]
            known = np.concatenate([self._tail, block])
            self._pairs.add(self._count_pairs(known, block, len(self._tail)))
            self._tail = known[-self._lags :]

    def _count_pairs(self, firsts: Int64s, seconds: Int64s, offset: int) -> LaggedPairs:
        return count_pairs(firsts, seconds, offset, len(self.symbols.names), self._lags)


def close_gaps(positions: Int64s, before: int, lags: int) -> Int64s:
    """Positions of samples after the last one, with gaps shortened to just above the lags."""
    steps = np.minimum(np.diff(positions, prepend=before), lags + 1)
    places: Int64s = np.cumsum(steps) - 1
    return places


def lay_out(places: Int64s, codes: Int64s, length: int) -> Int64s:
    """The codes at their positions, unknown elsewhere."""
    dense = np.full(length, NOTHING, np.int64)
    dense[places] = codes
    return dense
