"""The content of the queues: tuples with a tuple-order and a sign (Nile sections 2.3 and 3.1.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

Values = tuple[Any, ...]


class Held(NamedTuple):
    """A tuple as operators store it: equal ones are interchangeable."""

    min_ts: int
    """The smallest of its timestamps; FOREVER if only a negative tuple will end it."""
    values: Values
    stamps: tuple[int, ...] = ()
    """A timestamp for each source, only if windows differ."""


class PlanTuple(NamedTuple):
    """A tuple in a queue."""

    held: Held
    time: int
    """Its maxTS: the instant from which it, or its end, holds."""
    sign: int = 1
    """-1 for a negative (invalid) tuple: what is held ends before its window does."""
