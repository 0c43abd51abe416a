"""Minimal occurrences of subsequences in a stream of symbols.

A sequence occurs at rows i < … < j if these have its symbols in order, at most `gap` rows lie
between two neighbours, and the last is at most `span` later than the first. Only minimal
occurrences count (Mannila, Toivonen, Verkamo, Data Mining and Knowledge Discovery 1, 1997): [i, j]
is not minimal if the sequence also occurs from i' to j' with i <= i', j' <= j and not both equal.
Without gaps every occurrence is minimal. Whether one is minimal depends only on the rows from i to
j, so occurrences can be counted when their last row arrives, and subtracted when their first row
leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeAlias

import numpy as np

from nilometer.kernels.arrays import Int64s

Symbols: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SequenceShape:
    """Which subsequences to search for; the span is in microseconds, closed; None: any."""

    shortest: int = 2
    longest: int = 5
    gap: int = 0
    span: int | None = None

    @property
    def reach(self) -> int:
        """How many rows before its last row an occurrence can begin."""
        return (self.longest - 1) * (self.gap + 1)


@dataclass(frozen=True, slots=True)
class SymbolRows:
    """Consecutive rows of one stream: symbols, and ascending times."""

    symbols: list[str]
    times: Int64s

    def __len__(self) -> int:
        return len(self.symbols)

    def cut(self, begin: int, end: int) -> SymbolRows:
        """The rows from begin to end - 1."""
        return SymbolRows(self.symbols[begin:end], self.times[begin:end])

    def followed_by(self, later: SymbolRows) -> SymbolRows:
        """These rows, then others."""
        return SymbolRows(self.symbols + later.symbols, np.concatenate([self.times, later.times]))


def no_rows() -> SymbolRows:
    """A stream before its first row."""
    return SymbolRows([], np.zeros(0, np.int64))


def count_ending(rows: SymbolRows, begin: int, shape: SequenceShape) -> Counter[Symbols]:
    """How often sequences occur with their last row at `begin` or later."""
    if shape.gap:
        return Counter(sequence for _, end, sequence in _minimal(rows, shape) if end >= begin)
    counts: Counter[Symbols] = Counter()
    for length in range(shape.shortest, shape.longest + 1):
        first = max(begin - length + 1, 0)
        counts.update(_runs(rows.cut(first, len(rows)), length, shape.span))
    return counts


def count_crossing(rows: SymbolRows, cut: int, shape: SequenceShape) -> Counter[Symbols]:
    """How often sequences occur with their first row before `cut` and their last at or after it."""
    if shape.gap:
        places = _minimal(rows, shape)
        return Counter(sequence for start, end, sequence in places if start < cut <= end)
    counts: Counter[Symbols] = Counter()
    for length in range(shape.shortest, shape.longest + 1):
        near = rows.cut(max(cut - length + 1, 0), cut + length - 1)
        counts.update(_runs(near, length, shape.span))
    return counts


def count_beginning(rows: SymbolRows, end: int, shape: SequenceShape) -> Counter[Symbols]:
    """How often sequences occur with their first row before `end`."""
    if shape.gap:
        return Counter(sequence for start, _, sequence in _minimal(rows, shape) if start < end)
    counts: Counter[Symbols] = Counter()
    for length in range(shape.shortest, shape.longest + 1):
        counts.update(_runs(rows.cut(0, end + length - 1), length, shape.span))
    return counts


def _runs(rows: SymbolRows, length: int, span: int | None) -> Iterator[Symbols]:
    """All sequences of consecutive rows of a length that fit into the span."""
    runs = zip(*(rows.symbols[place:] for place in range(length)), strict=False)
    if span is None or len(rows) < length:
        return runs
    fits = rows.times[length - 1 :] - rows.times[: len(rows) - length + 1] <= span
    return compress(runs, fits.tolist())


def _minimal(rows: SymbolRows, shape: SequenceShape) -> Iterator[tuple[int, int, Symbols]]:
    """The first row, the last row and the symbols of each minimal occurrence."""
    times = rows.times.tolist()
    recent: list[list[dict[Symbols, int]]] = []
    latest: dict[Symbols, int] = {}
    for end, symbol in enumerate(rows.symbols):
        earliest = None if shape.span is None else times[end] - shape.span
        ending = _ending_at(end, symbol, recent, shape.longest)
        for length, starts in enumerate(ending, 1):
            if earliest is not None:
                starts = {s: i for s, i in starts.items() if times[i] >= earliest}  # noqa: PLW2901
                ending[length - 1] = starts
            if length < shape.shortest:
                continue
            for sequence, start in starts.items():
                if start > latest.get(sequence, -1):
                    latest[sequence] = start
                    yield start, end, sequence
        recent = [ending, *recent[: shape.gap]]


def _ending_at(
    end: int, symbol: str, recent: Sequence[Sequence[dict[Symbols, int]]], longest: int
) -> list[dict[Symbols, int]]:
    """For each length, the sequences that end at a row, with the latest row each can begin at.

    `recent` has the same for the preceding rows, the nearest first.
    """
    ending: list[dict[Symbols, int]] = [{(symbol,): end}]
    for length in range(1, longest):
        starts: dict[Symbols, int] = {}
        for before in recent:
            for prefix, start in before[length - 1].items():
                sequence = (*prefix, symbol)
                if start > starts.get(sequence, -1):
                    starts[sequence] = start
        ending.append(starts)
    return ending
