"""How patterns are classified."""

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
    """What is done to each pattern first: each place to mean 0 and deviation 1 (standard), or the
    pattern to the sum 1 of absolute values (shares) or to the length 1 (unit)."""
    neighbours: int = 5
    depth: int | None = None
    """The greatest of the tree."""
    leaf: int = 5
    """The fewest patterns in a leaf of the tree."""
    clusters: int = 4
    """Of each class."""
    unknown: float | None = None
    """The largest distance to the nearest known pattern of a pattern that has a class."""
