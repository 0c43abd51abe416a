"""Matches of shapes and matrix profiles by their definitions, one pair at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean


def z_normalized(values: Sequence[float]) -> list[float] | None:
    """Mean 0 and standard deviation 1; None of values that are all equal."""
    if max(values) == min(values):
        return None
    mean = fmean(values)
    deviation = math.sqrt(fmean((one - mean) ** 2 for one in values))
    return [(one - mean) / deviation for one in values]


def distance(left: Sequence[float], right: Sequence[float], normalize: bool = True) -> float:
    """Of two subsequences; infinite if one has no shape or is broken."""
    if not all(map(math.isfinite, [*left, *right])):
        return math.inf
    if normalize:
        both = z_normalized(left), z_normalized(right)
        if both[0] is None or both[1] is None:
            return math.inf
        left, right = both[0], both[1]
    return math.dist(left, right)


def distances(series: Sequence[float], shape: Sequence[float], normalize: bool) -> list[float]:
    """From a shape, of all subsequences."""
    length = len(shape)
    starts = range(len(series) - length + 1)
    return [distance(series[at : at + length], shape, normalize) for at in starts]


def matches(
    series: Sequence[float], shape: Sequence[float], limit: float, normalize: bool = True
) -> list[int]:
    """Starts of matches that are better than those within half a shape, and known to be."""
    found, half = [], len(shape) // 2
    apart = [one if one <= limit else math.inf for one in distances(series, shape, normalize)]
    for at in range(len(apart) - half):
        before, after = apart[max(0, at - half) : at], apart[at + 1 : at + half + 1]
        if apart[at] < min([math.inf, *before]) and apart[at] <= min([math.inf, *after]):
            found.append(at)
    return found


def profile(series: Sequence[float], length: int) -> list[float]:
    """The distance of each subsequence from the nearest one outside its exclusion zone."""
    zone = math.ceil(length / 4)
    starts = range(len(series) - length + 1)
    pieces = [series[at : at + length] for at in starts]
    return [
        min(
            (distance(pieces[i], pieces[j]) for j in starts if abs(i - j) > zone),
            default=math.inf,
        )
        for i in starts
    ]
