"""Options of classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

METHODS: Final = ("tree", "neighbours", "clusters")
SCALES: Final = ("none", "standard", "shares", "unit")


@dataclass(frozen=True)
class ClassifierOptions:
    """How patterns are compared, and by which method."""

    method: str = "neighbours"
    scale: str = "none"
    """How each pattern is scaled first: each position to mean 0 and deviation 1 (standard), or the
    pattern to a sum of absolute values of 1 (shares) or to length 1 (unit)."""
    neighbours: int = 5
    depth: int | None = None
    """The maximum depth of the tree."""
    leaf: int = 5
    """The minimum number of patterns in a leaf of the tree."""
    clusters: int = 4
    """The number of clusters of each class."""
    unknown: float | None = None
    """The largest distance to the nearest known pattern; beyond it the class is unknown."""
