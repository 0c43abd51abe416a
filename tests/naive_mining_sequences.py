"""Frequent subsequences by definition: every choice of rows is tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise

Event = tuple[int, str, str]
"""The time, the stream and the symbol of a row."""


def occurrences(
    rows: Sequence[tuple[int, str]], shortest: int, longest: int, gap: int, span: int | None
) -> Counter[tuple[str, ...]]:
    """The minimal occurrences in the rows (time, symbol) of one stream."""
    intervals: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    for length in range(shortest, longest + 1):
        for places in combinations(range(len(rows)), length):
            steps = pairwise(places)
            if any(later - earlier - 1 > gap for earlier, later in steps):
                continue
            if span is not None and rows[places[-1]][0] - rows[places[0]][0] > span:
                continue
            symbols = tuple(rows[place][1] for place in places)
            intervals.setdefault(symbols, set()).add((places[0], places[-1]))
    return Counter(
        {
            symbols: sum(_is_minimal(one, spans) for one in spans)
            for symbols, spans in intervals.items()
        }
    )


def _is_minimal(one: tuple[int, int], intervals: set[tuple[int, int]]) -> bool:
    return not any(
        other != one and one[0] <= other[0] and other[1] <= one[1] for other in intervals
    )


def frequent(
    events: Sequence[Event],
    shortest: int,
    longest: int,
    gap: int,
    span: int | None,
    across: float,
    support: int,
) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """For each frequent sequence: its streams, the lowest support in them, and all occurrences."""
    names = {stream for _, stream, _ in events}
    counts = {
        name: occurrences(
            [(time, symbol) for time, stream, symbol in events if stream == name],
            shortest,
            longest,
            gap,
            span,
        )
        for name in names
    }
    sequences: dict[tuple[str, ...], tuple[int, int, int]] = {}
    for sequence in {sequence for one in counts.values() for sequence in one}:
        numbers = [one[sequence] for one in counts.values()]
        enough = [number for number in numbers if number >= support]
        if enough and len(enough) >= across * len(names) - 1e-9:
            sequences[sequence] = (len(enough), min(enough), sum(numbers))
    return sequences


def short_occurrences(symbols: Sequence[str], gap: int) -> Counter[tuple[str, ...]]:
    """The minimal occurrences of two and three symbols in a long stream."""
    counts: Counter[tuple[str, ...]] = Counter()
    steps = range(1, gap + 2)
    for length in (2, 3):
        intervals: dict[tuple[str, ...], set[tuple[int, int]]] = {}
        for i in range(len(symbols)):
            ends = [(i, j) for j in (i + one for one in steps)]
            if length == 3:
                ends = [(i, j, j + two) for _, j in ends for two in steps]
            for places in ends:
                if places[-1] < len(symbols):
                    sequence = tuple(symbols[place] for place in places)
                    intervals.setdefault(sequence, set()).add((i, places[-1]))
        for sequence, some in intervals.items():
            counts[sequence] = sum(_is_minimal(one, some) for one in some)
    return counts
