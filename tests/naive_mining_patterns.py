"""PATTERNS by definition: every segment against every pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

Symbols = tuple[str | None, ...]


def naive_segments(samples: Mapping[int, str | None], period: int) -> list[Symbols]:
    """The segments between the first known sample and the last."""
    if not samples:
        return []
    segments = []
    for start in range(min(samples) // period * period, max(samples) + 1, period):
        inside = [samples.get(start + step) for step in range(period)]
        whole = min(samples) <= start and start + period - 1 <= max(samples)
        if whole and any(symbol is not None for symbol in inside):
            segments.append(tuple(inside))
    return segments


def naive_support(pattern: Symbols, segments: Sequence[Symbols]) -> int:
    """How many segments match a pattern, in which None is any symbol."""
    return sum(
        all(wanted is None or wanted == value for wanted, value in zip(pattern, one, strict=True))
        for one in segments
    )


def naive_patterns(
    segments: Sequence[Symbols], alphabet: Sequence[str], confidence: float, wanted: str
) -> dict[Symbols, int]:
    """The frequent patterns and their support."""
    period = len(segments[0]) if segments else 0
    frequent = {}
    for pattern in product([None, *alphabet], repeat=period):
        support = naive_support(pattern, segments)
        if any(pattern) and support >= confidence * len(segments) - 1e-9 and support > 0:
            frequent[pattern] = support

    def inside(one: Symbols, other: Symbols) -> bool:
        pairs = zip(one, other, strict=True)
        return one != other and all(mine in (None, theirs) for mine, theirs in pairs)

    def stays(pattern: Symbols) -> bool:
        around = [other for other in frequent if inside(pattern, other)]
        if wanted == "closed":
            return all(frequent[other] < frequent[pattern] for other in around)
        return wanted == "all" or not around

    return {pattern: support for pattern, support in frequent.items() if stays(pattern)}
