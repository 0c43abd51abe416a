"""Counts of subsequences in one stream: exact in a window, within an error without one.

In a window the rows are kept, and what begins in a row that leaves is subtracted. Without a window
a fixed number of counters is kept (Misra, Gries, Science of Computer Programming 2, 1982; in the
batched form of Agarwal and others, Mergeable Summaries, PODS 2012): when there are more, the count
of the first excess one is subtracted from all, and those that reach zero are dropped. The total
subtracted is the error. It is at most the number of occurrences divided by the number of counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nilometer.mining.occurrences import (
    SequenceShape,
    SymbolRows,
    Symbols,
    count_beginning,
    count_crossing,
    count_ending,
    no_rows,
)
from nilometer.mining.table_function import MiningError


@dataclass(slots=True)
class SequenceCounts:
    """The counts of one stream; `counters` is None if rows are kept for a window."""

    shape: SequenceShape
    counters: int | None
    counts: Counter[Symbols] = field(default_factory=Counter)
    error: int = 0
    seen: int = 0
    """The number of rows so far."""
    first: SymbolRows = field(default_factory=no_rows)
    """The rows in which occurrences from a preceding part can end; only without a window."""
    last: SymbolRows = field(default_factory=no_rows)
    """The rows in which occurrences that end in later rows can begin; in a window, all rows."""

    def add(self, rows: SymbolRows) -> None:
        """Count what ends in the next rows."""
        times = np.concatenate([self.last.times[-1:], rows.times])
        if (np.diff(times) < 0).any():
            raise MiningError("the rows of a stream must come in order of time")
        if self.counters is None:
            self._count(rows)
            return
        self.first = self.first.followed_by(rows.cut(0, self.shape.reach - len(self.first)))
        begin = 0
        while begin < len(rows):
            # Counters are dropped after fixed numbers of rows, so batches do not matter.
            end = begin + self._stride - self.seen % self._stride
            self._count(rows.cut(begin, end))
            if self.seen % self._stride == 0:
                self._drop()
            begin = end

    def forget(self, before: int) -> None:
        """Subtract what begins in rows strictly before a time."""
        leaving = int(np.searchsorted(self.last.times, before))
        if leaving:
            near = self.last.cut(0, leaving + self.shape.reach)
            self.counts = self._without(count_beginning(near, leaving, self.shape))
            self.last = self.last.cut(leaving, len(self.last))

    def merge(self, later: SequenceCounts) -> None:
        """Add what occurs in the rows that follow these, and across the boundary."""
        reach = self.shape.reach
        before = self.last.cut(max(len(self.last) - reach, 0), len(self.last))
        after = later.last if self.counters is None else later.first
        near = before.followed_by(after.cut(0, reach))
        crossing = count_crossing(near, len(before), self.shape)
        kept = self.last if self.counters is None else before
        if self.counters is not None:
            self.first = self.first.followed_by(later.first.cut(0, reach - len(self.first)))
        self.last = self._kept(kept.followed_by(later.last))
        self.counts = self.counts + later.counts + crossing
        self.error += later.error
        self.seen += later.seen
        self._drop()

    @property
    def _stride(self) -> int:
        """Counters are dropped every so many rows; in between there are at most twice as many."""
        assert self.counters is not None
        lengths = range(self.shape.shortest, self.shape.longest + 1)
        ending: int = sum((self.shape.gap + 1) ** (length - 1) for length in lengths)
        return max(self.counters // ending, 1)

    def _count(self, rows: SymbolRows) -> None:
        before = self.last.cut(max(len(self.last) - self.shape.reach, 0), len(self.last))
        near = before.followed_by(rows)
        self.counts.update(count_ending(near, len(before), self.shape))
        self.last = self.last.followed_by(rows) if self.counters is None else self._kept(near)
        self.seen += len(rows)

    def _kept(self, rows: SymbolRows) -> SymbolRows:
        if self.counters is None:
            return rows
        return rows.cut(max(len(rows) - self.shape.reach, 0), len(rows))

    def _drop(self) -> None:
        if self.counters is None or len(self.counts) <= self.counters:
            return
        counts = np.fromiter(self.counts.values(), np.int64, len(self.counts))
        place = len(counts) - 1 - self.counters
        taken = int(np.partition(counts, place)[place])
        self.counts = Counter({s: n - taken for s, n in self.counts.items() if n > taken})
        self.error += taken

    def _without(self, leaving: Mapping[Symbols, int]) -> Counter[Symbols]:
        counts = self.counts
        for sequence, number in leaving.items():
            counts[sequence] -= number
            if not counts[sequence]:
                del counts[sequence]
        return counts
