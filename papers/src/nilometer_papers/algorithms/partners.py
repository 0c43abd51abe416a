"""The step that all backward joins share: a combination probes a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.algorithms.buffers import Buffer
from nilometer_papers.algorithms.conditions import Condition
from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.stream_tuple import StreamTuple

Matches = list[tuple[MTuple, Sequence[StreamTuple]]]
"""Combinations, each with the tuples that extend it."""


def partners(
    one: MTuple,
    buffer: Buffer[StreamTuple],
    period: tuple[int, int],
    condition: Condition,
    counters: Counters,
) -> list[StreamTuple]:
    """The tuples of a buffer in a period, both ends included, that match a combination."""
    low, high = period
    candidates = buffer.look(one.key)
    counters.time_tests += 2 * len(candidates)
    inside = [each for each in candidates if low <= each.time <= high]
    if buffer.by_key:
        return inside
    counters.value_tests += len(inside)
    return condition.among(one.members, inside)
