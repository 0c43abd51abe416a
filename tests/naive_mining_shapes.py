"""Matches of shapes and matrix profiles by their definitions, one pair at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean


def z_normalized(values: Sequence[float], flat: float = 0.0) -> list[float] | None:
    """Values with mean 0 and standard deviation 1; None if they are no higher than a flat one."""
    if max(values) - min(values) <= flat:
        return None
    mean = fmean(values)
    deviation = math.sqrt(fmean((one - mean) ** 2 for one in values))
    return [(one - mean) / deviation for one in values]


def distance(left: Sequence[float], right: Sequence[float], normalize: bool = True) -> float:
    """The distance of two subsequences; infinite if one is flat or broken."""
    if not all(map(math.isfinite, [*left, *right])):
        return math.inf
    if normalize:
        both = z_normalized(left), z_normalized(right)
        if both[0] is None or both[1] is None:
            return math.inf
        left, right = both[0], both[1]
    return math.dist(left, right)


def distances(series: Sequence[float], shape: Sequence[float], normalize: bool) -> list[float]:
    """The distances of all subsequences from a shape."""
    length = len(shape)
    starts = range(len(series) - length + 1)
    return [distance(series[at : at + length], shape, normalize) for at in starts]


def matches(
    series: Sequence[float], shape: Sequence[float], limit: float, normalize: bool = True
) -> list[int]:
    """Starts of matches that are better than those within half a shape, and known to be."""
    matches, half = [], len(shape) // 2
    apart = [one if one <= limit else math.inf for one in distances(series, shape, normalize)]
    for at in range(len(apart) - half):
        before, after = apart[max(0, at - half) : at], apart[at + 1 : at + half + 1]
        if apart[at] < min([math.inf, *before]) and apart[at] <= min([math.inf, *after]):
            matches.append(at)
    return matches


def profile(series: Sequence[float], length: int) -> list[float]:
    """The distance of each subsequence from the nearest one outside its exclusion zone.

    A flat one has no nearest; the correlation of others with it is 0.5.
    """
    zone = math.ceil(length / 4)
    pieces = [series[at : at + length] for at in range(len(series) - length + 1)]
    whole = {i: piece for i, piece in enumerate(pieces) if all(map(math.isfinite, piece))}
    finite = [one for one in series if math.isfinite(one)] or [0.0]
    flat = 1e-5 * (max(finite) - min(finite))
    normal = {i: z_normalized(piece, flat) for i, piece in whole.items()}
    apart = [math.inf] * len(pieces)
    for i, one in normal.items():
        for j, other in normal.items():
            if one is not None and abs(i - j) > zone:
                here = math.sqrt(length) if other is None else math.dist(one, other)
                apart[i] = min(apart[i], here)
    return apart
