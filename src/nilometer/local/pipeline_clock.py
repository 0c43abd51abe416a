"""The clock of a pipeline: microseconds that pass as its user says, or as its work costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Tells the time in microseconds."""


class SimulatedClock:
    """A clock that stands still until somebody moves it; never back.

    >>> clock = SimulatedClock()
    >>> clock.advance(5)
    >>> clock.move_to(3)
    >>> clock()
    5
    """

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def __call__(self) -> int:
        return self._now

    def advance(self, microseconds: int) -> None:
        """Let time pass."""
        self._now += microseconds

    def move_to(self, instant: int) -> None:
        """Let time pass until an instant, unless it is over."""
        self._now = max(self._now, instant)


def measured_clock(start: int = 0) -> Clock:
    """A clock that shows an instant now, and goes as time really does."""
    began = perf_counter_ns()
    return lambda: start + (perf_counter_ns() - began) // 1000


@dataclass(frozen=True, slots=True)
class Costs:
    """How long operators work, in microseconds of a simulated clock."""

    call: int = 0
    """Whenever an operator runs."""
    row: int = 0
    """For every tuple that it processes: new, negative or expired."""
    probe: int = 0
    """For every operator that is asked for its time."""
