"""Periods in a window of a series: samples are kept, so that the first of them can leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.period_peaks import Period
from nilometer.mining.periodicity import Periodicity, close_gaps, lay_out
from nilometer.mining.symbols import NOTHING, Alphabet, codes_in
from nilometer.mining.table_function import MiningError, Saved


class WindowPeriodicity(Periodicity):
    """A Periodicity that can forget its first samples, and finds the phases of periods.

    >>> periodicity = WindowPeriodicity(longest=20)
    >>> periodicity.add(list("xyzzyxyx" + "abcd" * 20))
    >>> periodicity.forget(8)
    >>> [(one.period, one.symbol, one.phase) for one in periodicity.periods()][:3]
    [(4, None, None), (4, 'a', 0), (4, 'b', 1)]
    """

    def __init__(self, longest: int, symbols: Alphabet | None = None) -> None:
        super().__init__(longest, symbols)
        self._positions, self._codes = np.empty(0, np.int64), np.empty(0, np.int64)

    def merge(self, other: Periodicity) -> None:
        """Add the samples of another that keeps them, which follow directly."""
        if not isinstance(other, WindowPeriodicity):
            raise MiningError("a window cannot be merged with what does not keep its samples")
        codes = codes_in(self.symbols, other.symbols)
        if len(other._positions):
            moved = other._positions - other._positions[0] + self._next()
            self._add_codes(moved, codes[other._codes])

    def forget(self, count: int) -> None:
        """Remove a number of samples from the start."""
        count = min(count, len(self._codes))
        if count == 0:
            return
        self._convolve()
        near = int(np.searchsorted(self._positions, self._positions[count - 1] + self._lags + 1))
        places = close_gaps(self._positions[:near], int(self._positions[0]) - 1, self._lags)
        codes = lay_out(places, self._codes[:near], int(places[-1]) + 1)
        leaving = codes[: int(places[count - 1]) + 1]
        self._pairs.remove(self._count_pairs(leaving, codes, 0))
        gone = self._codes[:count]
        self._counts -= np.bincount(gone[gone >= 0], minlength=len(self._counts))
        self._known -= int((gone != NOTHING).sum())
        self._positions, self._codes = self._positions[count:], self._codes[count:]
        if not len(self._codes):
            self._ends, self._tail = None, self._codes
            return
        self._ends = (int(self._positions[0]), int(self._positions[-1]))
        since = int(np.searchsorted(self._positions, self._ends[1] - self._lags + 1))
        last = self._positions[since:]
        self._tail = lay_out(last - last[0], self._codes[since:], int(last[-1] - last[0]) + 1)

    def periods(self, most: int = 10, least: float = 0.1) -> list[Period]:
        """The periods with their phases, counted from position 0, that of the first sample."""
        return [self._with_phase(one) for one in super().periods(most, least)]

    def save(self) -> Saved:
        """What `load` needs, including all samples."""
        return super().save() | {"positions": self._positions, "codes": self._codes}

    @classmethod
    def load(cls, saved: Saved) -> Self:
        """Restore from a saved state."""
        restored = super().load(saved)
        restored._positions, restored._codes = saved["positions"], saved["codes"]
        return restored

    def _add_codes(self, positions: Int64s, codes: Int64s) -> None:
        super()._add_codes(positions, codes)
        self._positions = np.concatenate([self._positions, positions])
        self._codes = np.concatenate([self._codes, codes])

    def _with_phase(self, one: Period) -> Period:
        """The period of a symbol, with the step at which the symbol is most reliable."""
        if one.symbol is None:
            return one
        code = self.symbols.names.index(one.symbol)
        pairs = repeats(self._positions[self._codes != NOTHING], one.period)
        matches = repeats(self._positions[self._codes == code], one.period)
        # Steps of equal confidence are ranked by matches, then the first step wins.
        shares = matches / np.maximum(pairs, 1)
        phase = int(np.lexsort((-matches, -shares))[0])
        return replace(one, phase=phase, phase_confidence=float(shares[phase]))


def repeats(positions: Int64s, period: int) -> Int64s:
    """How many ascending positions recur one period later, by step within the period."""
    later = np.isin(positions + period, positions, assume_unique=True)
    return np.bincount(positions[later] % period, minlength=period)
