"""Patterns of several periods in one series, each mined independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from nilometer.kernels.arrays import Int64s
from nilometer.mining.frequent_sets import SetKind
from nilometer.mining.partial_patterns import PartialPatterns, Pattern
from nilometer.mining.symbols import Alphabet
from nilometer.mining.table_function import Saved


class SeveralPeriods:
    """Mines the patterns of several periods in one pass over the samples.

    >>> from nilometer.mining.symbols import FirstSeen
    >>> mined = SeveralPeriods([2, 3], 0.9, FirstSeen(), hits=10)
    >>> import numpy as np
    >>> mined.add_at(np.arange(12), list("abaabaabaaba"))
    >>> [(one.text, len(one.symbols)) for one in mined.patterns()]
    [('a b a', 3)]
    """

    def __init__(
        self, periods: Sequence[int], confidence: float, symbols: Alphabet, *, hits: int
    ) -> None:
        self._parts = [PartialPatterns(one, confidence, symbols, hits=hits) for one in periods]

    def add_at(self, positions: Int64s, values: Any) -> None:
        """Add the next samples, given with their steps."""
        for part in self._parts:
            part.add_at(positions, values)

    def patterns(self, wanted: SetKind | str = SetKind.MAXIMAL, most: int = 100) -> list[Pattern]:
        """At most so many frequent patterns of each period, in the order of the periods."""
        return [one for part in self._parts for one in part.patterns(wanted, most)]

    def save(self) -> Saved:
        """What `load` needs."""
        saved: Saved = {"periods": [part.period for part in self._parts]}
        for part in self._parts:
            saved |= {f"{part.period}.{name}": value for name, value in part.save().items()}
        return saved

    @classmethod
    def load(cls, saved: Saved) -> Self:
        """Restore from a saved state, which can be reused."""
        restored = cls.__new__(cls)
        restored._parts = [_load_part(saved, period) for period in saved["periods"]]
        return restored


def _load_part(saved: Saved, period: int) -> PartialPatterns:
    start = f"{period}."
    own = {name.removeprefix(start): one for name, one in saved.items() if name.startswith(start)}
    return PartialPatterns.load(own)
