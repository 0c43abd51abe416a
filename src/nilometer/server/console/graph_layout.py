"""Where the nodes and labels of a small graph stand: on an ellipse, none upon another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Final

_GAP: Final = 26.0
_WIDEST: Final = 420.0
"""Nodes are moved apart up to so far from the middle, to make room for labels."""
_ALONG: Final = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72)
"""Where on its edge a label may stand, the best place first."""


@dataclass(frozen=True)
class Box:
    """A rectangle by its centre."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box, gap: float = 0.0) -> bool:
        """Whether the two come closer than the gap, in both directions."""
        beside = abs(self.x - other.x) * 2 < self.width + other.width + 2 * gap
        over = abs(self.y - other.y) * 2 < self.height + other.height + 2 * gap
        return beside and over

    def edge_towards(self, x: float, y: float) -> tuple[float, float]:
        """Where the line from the centre to a point outside leaves the box."""
        across, down = x - self.x, y - self.y
        share = max(abs(across) * 2 / self.width, abs(down) * 2 / self.height)
        return self.x + across / share, self.y + down / share

    def moved(self, x: float, y: float) -> Box:
        return Box(self.x + x, self.y + y, self.width, self.height)


def lay_out(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    label_sizes: Sequence[tuple[float, float]],
) -> tuple[list[Box], list[Box]]:
    """Nodes and labels, further apart until labels have room, as long as that is reasonable."""
    nodes = place_nodes(sizes)
    while True:
        labels = place_labels(nodes, edges, label_sizes)
        wide = max((one.x for one in nodes), default=0.0)
        if wide > _WIDEST or not _collide([*nodes, *labels]):
            return nodes, labels
        nodes = [Box(one.x * 1.07, one.y * 1.1, one.width, one.height) for one in nodes]


def _collide(boxes: Sequence[Box], gap: float = 0.0) -> bool:
    return any(a.overlaps(b, gap) for i, a in enumerate(boxes) for b in boxes[:i])


def place_nodes(sizes: Sequence[tuple[float, float]]) -> list[Box]:
    """Boxes of these sizes around an ellipse, as small a one as keeps them apart."""
    if len(sizes) < 2:
        return [Box(0, 0, *size) for size in sizes]
    wide, high = (190.0, 0.0) if len(sizes) == 2 else (150.0 + 20 * len(sizes), 110.0)
    while True:
        boxes = _around(sizes, wide, high)
        if not _collide(boxes, _GAP):
            return boxes
        wide, high = wide * 1.08, high * 1.12


def _around(sizes: Sequence[tuple[float, float]], wide: float, high: float) -> list[Box]:
    count = len(sizes)
    start = pi if count == 2 else -pi / 2 if count % 2 else -pi / 2 - pi / count
    turns = [start + 2 * pi * place / count for place in range(count)]
    return [
        Box(wide * cos(turn), high * sin(turn), *size)
        for turn, size in zip(turns, sizes, strict=True)
    ]


def place_labels(
    nodes: Sequence[Box], edges: Sequence[tuple[int, int]], sizes: Sequence[tuple[float, float]]
) -> list[Box]:
    """A box on each edge, away from nodes and from other labels where there is room."""
    placed: list[Box] = []
    for (first, second), size in zip(edges, sizes, strict=True):
        a, b = nodes[first], nodes[second]
        boxes = [Box(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, *size) for t in _ALONG]
        taken = [*nodes, *placed]
        placed.append(min(boxes, key=lambda box: sum(box.overlaps(one, 2) for one in taken)))
    return placed


def frame(boxes: Sequence[Box], margin: float) -> tuple[float, float, float, float]:
    """How far to move boxes to the right and down, and the size of the whole."""
    left = min(one.x - one.width / 2 for one in boxes) - margin
    top = min(one.y - one.height / 2 for one in boxes) - margin
    right = max(one.x + one.width / 2 for one in boxes) + margin
    bottom = max(one.y + one.height / 2 for one in boxes) + margin
    return -left, -top, right - left, bottom - top
