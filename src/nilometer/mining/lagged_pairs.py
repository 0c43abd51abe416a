"""How often symbols recur after each lag, counted by convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.symbols import NOTHING
from nilometer.mining.table_function import Numbers


@dataclass
class LaggedPairs:
    """Counts of pairs of samples by their distance: column p is for samples p steps apart.

    Each row of `matches` is for a symbol: both samples have it. In `begins` the first has it, and
    the second is known. In `known` both are known.
    """

    matches: Int64s
    begins: Int64s
    known: Int64s

    @classmethod
    def none(cls, symbols: int, lags: int) -> LaggedPairs:
        """No pairs, for a number of symbols and lags."""
        table = np.zeros((symbols, lags + 1), np.int64)
        return cls(table, table.copy(), np.zeros(lags + 1, np.int64))

    def add(self, other: LaggedPairs) -> None:
        """Add the counts of other pairs, which may have more symbols."""
        self._widen(len(other.matches))
        count = len(other.matches)
        self.matches[:count] += other.matches
        self.begins[:count] += other.begins
        self.known += other.known

    def recoded(self, codes: Int64s) -> LaggedPairs:
        """The same pairs, where symbol i becomes codes[i], or is dropped if that is negative."""
        own = codes[: len(self.matches)]
        keep = own >= 0
        result = LaggedPairs.none(int(own.max(initial=-1)) + 1, len(self.known) - 1)
        result.matches[own[keep]] = self.matches[keep]
        result.begins[own[keep]] = self.begins[keep]
        result.known[:] = self.known
        return result

    def remove(self, other: LaggedPairs) -> None:
        """Subtract the counts of other pairs."""
        count = len(other.matches)
        self.matches[:count] -= other.matches
        self.begins[:count] -= other.begins
        self.known -= other.known

    def _widen(self, symbols: int) -> None:
        missing = symbols - len(self.matches)
        if missing > 0:
            more = np.zeros((missing, self.matches.shape[1]), np.int64)
            self.matches = np.concatenate([self.matches, more])
            self.begins = np.concatenate([self.begins, more])


def count_pairs(
    firsts: Int64s, seconds: Int64s, offset: int, symbols: int, lags: int
) -> LaggedPairs:
    """The pairs of a sample in `firsts` and a later one, up to `lags`, in `seconds`.

    `seconds` starts `offset` steps after `firsts`; both are codes of samples one step apart.
    """
    import scipy.fft  # noqa: PLC0415  slow to load, and an extra

    pairs = LaggedPairs.none(symbols, lags)
    size = scipy.fft.next_fast_len(len(firsts) + len(seconds) + lags, real=True)
    wanted = (np.arange(1, lags + 1) - offset) % size

    def lagged(first: Any, second: Any) -> Int64s:
        turned: Numbers = scipy.fft.irfft(first.conj() * second, size)[wanted]
        return np.rint(turned).astype(np.int64)

    known_first = scipy.fft.rfft(firsts != NOTHING, size)
    known_second = scipy.fft.rfft(seconds != NOTHING, size)
    pairs.known[1:] = lagged(known_first, known_second)
    for code in np.unique(firsts[firsts >= 0]):
        first = scipy.fft.rfft(firsts == code, size)
        pairs.begins[code, 1:] = lagged(first, known_second)
        second = scipy.fft.rfft(seconds == code, size)
        pairs.matches[code, 1:] = lagged(first, second)
    return pairs
