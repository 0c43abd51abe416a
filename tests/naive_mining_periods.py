"""PERIODS by definition: all pairs of samples, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

Samples = Mapping[int, str | None]
"""The values of a series by position; None is unknown."""


def naive_counts(samples: Samples, longest: int) -> dict[str, Counter[object]]:
    """Matches and starts by symbol and lag, pairs of known samples by lag."""
    counts: dict[str, Counter[object]] = {"matches": Counter(), "begins": Counter()}
    counts["known"] = Counter()
    for position, value in samples.items():
        for lag in range(1, longest + 1):
            later = samples.get(position + lag)
            if value is None or later is None:
                continue
            counts["known"][lag] += 1
            counts["begins"][value, lag] += 1
            counts["matches"][value, lag] += value == later
    return counts


def naive_score(samples: Samples, lag: int, symbol: str | None) -> float:
    """The share of samples that recur after a lag, less chance."""
    known = [value for value in samples.values() if value is not None]
    pairs = [
        (value, samples[position + lag])
        for position, value in samples.items()
        if value is not None and samples.get(position + lag) is not None
    ]
    if symbol is not None:
        pairs = [pair for pair in pairs if pair[0] == symbol]
        chance = known.count(symbol) / len(known)
    else:
        chance = sum((count / len(known)) ** 2 for count in Counter(known).values())
    share = sum(one == other for one, other in pairs) / len(pairs) if pairs else chance
    return (share - chance) / (1 - chance)


def naive_phase(samples: Samples, period: int, symbol: str) -> tuple[int, float]:
    """The step in a period with the best share of matches in the pairs that start there."""
    best = (0, 0.0, 0)
    for step in range(period):
        begins = [
            position
            for position, value in samples.items()
            if position % period == step
            and value is not None
            and samples.get(position + period) is not None
        ]
        hits = sum(samples[one] == symbol == samples[one + period] for one in begins)
        share = hits / len(begins) if begins else 0.0
        if (share, hits) > (best[1], best[2]):
            best = (step, share, hits)
    return best[0], best[1]
