"""Frequent subsequences that occur across all streams (STEAM 7.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.occurrences import SequenceShape, SymbolRows, Symbols
from nilometer.mining.saved_sequences import load_counts, save_counts
from nilometer.mining.sequence_counts import SequenceCounts
from nilometer.mining.table_function import MiningError, Saved

COUNTERS: Final = 10_000
"""By default, so many sequences are counted in each stream without a window."""


@dataclass(frozen=True, slots=True)
class FrequentSequence:
    """A subsequence, and how often it occurs."""

    sequence: Symbols
    streams: int
    """The number of streams in which it occurs often enough."""
    support: int
    """The smallest number of occurrences in any of these streams."""
    occurrences: int
    """The number of occurrences in all streams."""
    error: int
    """The maximum number of uncounted occurrences in each stream; 0: all counts are exact."""


class FrequentSequences:
    """Counts subsequences in many streams, and finds those that occur in enough of them.

    With `counters`, memory is bounded and counts may be too small by a reported error; with None
    all rows are kept, counts are exact, and rows can be forgotten. Times are microseconds.

    >>> sequences = FrequentSequences(longest=3)
    >>> sequences.add([0, 1, 2, 3, 4, 5], ["x", "y", "x", "y", "x", "y"], list("aabbcd"))
    >>> [one.sequence for one in sequences.answer()]
    [('a', 'b')]
    >>> sequences.add([6, 7], ["y", "y"], ["b", "c"])
    >>> sequences.answer()[0].occurrences
    2
    """

    def __init__(
        self,
        *,
        shortest: int = 2,
        longest: int = 5,
        gap: int = 0,
        span: int | None = None,
        across: float = 1.0,
        support: int = 1,
        counters: int | None = COUNTERS,
    ) -> None:
        self._shape = SequenceShape(shortest, longest, gap, span)
        self._across = across
        self._support = support
        self._counters = counters
        self._streams: dict[str, SequenceCounts] = {}

    def add(
        self,
        times: Sequence[int] | Int64s,
        streams: Iterable[str | None],
        values: Iterable[str | None],
    ) -> None:
        """Add the next rows, in order of time; rows without a stream or a value are ignored."""
        when = np.asarray(times, np.int64)
        for name, (places, symbols) in _by_stream(streams, values).items():
            counts = self._streams.get(name)
            if counts is None:
                counts = self._streams[name] = SequenceCounts(self._shape, self._counters)
            counts.add(SymbolRows(symbols, when[places]))

    def forget(self, before: int) -> None:
        """Remove the rows strictly before a time, and streams that have no rows left."""
        if self._counters is not None:
            raise MiningError("rows can be forgotten only where they are kept: counters is None")
        for counts in self._streams.values():
            counts.forget(before)
        self._streams = {name: one for name, one in self._streams.items() if len(one.last)}

    def merge(self, later: FrequentSequences) -> None:
        """Add the counts of the rows that follow these; the other object is unchanged.

        Occurrences that begin here and end there are counted too, so without an error the counts
        are those of a single pass.
        """
        if (later._shape, later._counters) != (self._shape, self._counters):
            raise MiningError("only what was counted in the same way can be merged")
        for name, counts in later._streams.items():
            mine = self._streams.get(name)
            if mine is None:
                mine = self._streams[name] = SequenceCounts(self._shape, self._counters)
            mine.merge(counts)

    def answer(self, most: int | None = None) -> list[FrequentSequence]:
        """Sequences that occur in enough streams, the best first: in many streams, often, long.

        Every result is true. What occurs `support` + error times in enough streams is found.
        """
        streams: Counter[Symbols] = Counter()
        for counts in self._streams.values():
            streams.update(s for s, n in counts.counts.items() if n >= self._support)
        needed = self._across * len(self._streams) - 1e-9
        error = max((counts.error for counts in self._streams.values()), default=0)
        sequences = [self._describe(s, n, error) for s, n in streams.items() if n >= needed]
        return sorted(sequences, key=_best_first)[:most]

    def save(self) -> Saved:
        """What `load` needs; without a window, bounded by the streams and their counters."""
        return save_counts(self._streams, self._shape.longest)

    def load(self, saved: Saved) -> None:
        """Continue from a saved state, with the same arguments."""
        self._streams = load_counts(saved, self._shape, self._counters)

    def _describe(self, sequence: Symbols, streams: int, error: int) -> FrequentSequence:
        numbers = [counts.counts.get(sequence, 0) for counts in self._streams.values()]
        support = min(number for number in numbers if number >= self._support)
        return FrequentSequence(sequence, streams, support, sum(numbers), error)


def _best_first(one: FrequentSequence) -> tuple[int, int, int, int, Symbols]:
    return -one.streams, -one.support, -one.occurrences, -len(one.sequence), one.sequence


def _by_stream(
    streams: Iterable[str | None], values: Iterable[str | None]
) -> dict[str, tuple[list[int], list[str]]]:
    """For each stream, the positions of its rows and their symbols."""
    by_stream: dict[str, tuple[list[int], list[str]]] = {}
    for place, (stream, value) in enumerate(zip(streams, values, strict=True)):
        if stream is not None and value is not None:
            rows = by_stream.setdefault(stream, ([], []))
            rows[0].append(place)
            rows[1].append(value)
    return by_stream
