"""Counts of subsequences as arrays and strings. Each symbol is stored once, then by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from nilometer.kernels.arrays import Int32s
from nilometer.mining.occurrences import SequenceShape, SymbolRows
from nilometer.mining.sequence_counts import SequenceCounts
from nilometer.mining.table_function import Saved

_NOTHING = -1
"""Fills the positions after the last symbol of a shorter sequence."""


def save_counts(streams: Mapping[str, SequenceCounts], longest: int) -> Saved:
    """Save the counts of each stream, and the rows kept of it."""
    symbols: dict[str, int] = {}
    every = list(streams.values())
    rows = [part for counts in every for part in (counts.first, counts.last)]
    sequences = np.full((sum(len(counts.counts) for counts in every), longest), _NOTHING, np.int32)
    for place, sequence in enumerate(chain.from_iterable(counts.counts for counts in every)):
        sequences[place, : len(sequence)] = _numbers(sequence, symbols)
    return {
        "streams": list(streams),
        "seen": np.array([counts.seen for counts in every], np.int64),
        "errors": np.array([counts.error for counts in every], np.int64),
        "row_numbers": np.array([len(part) for part in rows], np.int64),
        "rows": _numbers(chain.from_iterable(part.symbols for part in rows), symbols),
        "times": np.concatenate([np.zeros(0, np.int64), *(part.times for part in rows)]),
        "sizes": np.array([len(counts.counts) for counts in every], np.int64),
        "sequences": sequences,
        "counts": np.array([n for counts in every for n in counts.counts.values()], np.int64),
        "symbols": list(symbols),
    }


def load_counts(
    saved: Saved, shape: SequenceShape, counters: int | None
) -> dict[str, SequenceCounts]:
    """Restore the counts of each stream."""
    symbols = saved["symbols"]
    row_ends = np.cumsum(saved["row_numbers"]).tolist()
    ends = np.cumsum(saved["sizes"]).tolist()
    rows = SymbolRows([symbols[number] for number in saved["rows"].tolist()], saved["times"])
    parts = [rows.cut(*border) for border in zip([0, *row_ends], row_ends, strict=False)]
    sequences = [
        tuple(symbols[number] for number in numbers if number != _NOTHING)
        for numbers in saved["sequences"].tolist()
    ]
    counted = list(zip(sequences, saved["counts"].tolist(), strict=True))
    return {
        name: SequenceCounts(
            shape,
            counters,
            counts=Counter(dict(counted[begin:end])),
            error=int(saved["errors"][place]),
            seen=int(saved["seen"][place]),
            first=parts[2 * place],
            last=parts[2 * place + 1],
        )
        for place, (name, begin, end) in enumerate(
            zip(saved["streams"], [0, *ends], ends, strict=False)
        )
    }


def _numbers(texts: Iterable[str], symbols: dict[str, int]) -> Int32s:
    """The numbers of symbols; new ones get the next."""
    return np.array([symbols.setdefault(one, len(symbols)) for one in texts], np.int32)
