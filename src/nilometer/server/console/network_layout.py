"""The layout of a sensor network: boxes in columns, rows flow from left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nilometer.server.console.graph_layout import Box

GAP: Final = 18.0
BETWEEN: Final = 100.0
_MARGIN: Final = 8.0
_HEAD: Final = 34.0
"""Room for the column headings."""


@dataclass(frozen=True)
class Placed:
    """The position of each box, by its key, and the size of the whole."""

    boxes: Mapping[str, Box]
    width: float
    height: float


def depths_of(inputs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many steps each key is from the keys without inputs; a cycle ends where it closes."""
    depths: dict[str, int] = {}

    def depth(key: str, above: frozenset[str]) -> int:
        if key not in depths:
            below = [one for one in inputs.get(key, ()) if one not in above]
            depths[key] = max((depth(one, above | {key}) + 1 for one in below), default=0)
        return depths[key]

    for key in inputs:
        depth(key, frozenset({key}))
    return depths


def place_columns(
    sizes: Mapping[str, tuple[float, float]],
    depths: Mapping[str, int],
    inputs: Mapping[str, Sequence[str]],
) -> Placed:
    """Place boxes in columns by depth, each near the middle of its inputs."""
    levels = sorted(set(depths.values()))
    boxes: dict[str, Box] = {}
    left, bottom = _MARGIN, 0.0
    for level in levels:
        keys = [key for key in sizes if depths[key] == level]
        wide = max(sizes[key][0] for key in keys)
        bottom = max(bottom, _stack(keys, sizes, inputs, boxes, left + wide / 2))
        left += wide + BETWEEN
    return Placed(boxes, left - BETWEEN + _MARGIN, bottom + _MARGIN)


def _stack(
    keys: list[str],
    sizes: Mapping[str, tuple[float, float]],
    inputs: Mapping[str, Sequence[str]],
    boxes: dict[str, Box],
    x: float,
) -> float:
    """Place one column; returns how far down it reaches."""

    def wanted(key: str) -> float:
        """The middle of its inputs."""
        heights = [boxes[one].y for one in inputs.get(key, ()) if one in boxes]
        return sum(heights) / len(heights) if heights else 0.0

    top = _HEAD
    for key in sorted(keys, key=wanted):
        wide, high = sizes[key]
        y = max(top + high / 2, wanted(key))
        boxes[key] = Box(x, y, wide, high)
        top = y + high / 2 + GAP
    return top - GAP
