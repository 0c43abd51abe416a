"""Synthetic streams as in the papers: integer keys, exponential times between arrivals."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from nilometer_papers.algorithms.stream_tuple import StreamTuple

SECOND = 1_000_000


@dataclass(frozen=True)
class Rate:
    """The behaviour of a stream: tuples per second, number of distinct values, and delay."""

    per_second: float | Callable[[int], float]
    """A number, or a function of how many tuples of the stream have come."""
    values: int
    delay: int = 0
    """How much later than their timestamps its tuples arrive (microseconds)."""


def exponential_streams(rates: Sequence[Rate], tuples: int, seed: int) -> list[StreamTuple]:
    """That many tuples over all streams, in the order of arrival."""
    lines = [_stream(rate, stream, seed) for stream, rate in enumerate(rates)]
    merged = heapq.merge(*lines, key=lambda one: one.time + rates[one.stream].delay)
    return list(islice(merged, tuples))


def _stream(rate: Rate, stream: int, seed: int) -> Iterator[StreamTuple]:
    random, time, number = Random(f"{seed} {stream}"), 0.0, 0
    while True:
        speed = rate.per_second
        time += random.expovariate(speed(number) if callable(speed) else speed) * SECOND
        yield StreamTuple(int(time), random.randrange(rate.values), stream, number)
        number += 1
