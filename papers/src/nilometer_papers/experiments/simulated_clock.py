"""Response times under a simulated clock: arrivals at their times, service by measured CPU time."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from time import process_time_ns

from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.service import no_garbage_collection

Held = Callable[[], Sequence[int]]
"""How many tuples of each stream an algorithm is holding back until others come."""


def response_times(
    algorithm: JoinAlgorithm, held: Held, arrivals: Sequence[StreamTuple]
) -> list[float]:
    """Microseconds from each tuple's arrival until its processing is complete, in this order.

    A tuple waits for the server while others are served, and, if the algorithm holds it back,
    for tuples of other streams. What is still held back at the end is not counted.
    """
    open_tuples: list[deque[int]] = [deque() for _ in range(algorithm.task.streams)]
    free, responses = 0.0, []
    with no_garbage_collection():
        for arrival in arrivals:
            open_tuples[arrival.stream].append(arrival.time)
            began = process_time_ns()
            algorithm.process(arrival)
            spent = (process_time_ns() - began) / 1000
            free = max(free, arrival.time) + spent
            for line, count in zip(open_tuples, held(), strict=True):
                responses += [free - line.popleft() for _ in range(len(line) - count)]
    return responses


def response_times_in_batches(
    feed: Callable[[Sequence[StreamTuple]], float], arrivals: Sequence[StreamTuple]
) -> list[float]:
    """The same when all that has come is served at once, whenever the server is free.

    `feed` serves a micro-batch and returns how many microseconds that took.
    """
    free, responses, first = 0.0, [], 0
    while first < len(arrivals):
        begins = max(free, arrivals[first].time)
        last = bisect_right(arrivals, begins, lo=first, key=lambda one: one.time)
        batch = arrivals[first:last]
        free = begins + feed(batch)
        responses += [free - one.time for one in batch]
        first = last
    return responses
