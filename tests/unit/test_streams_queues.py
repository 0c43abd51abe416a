"""Queues of the stream manager: memory that is limited, tuples that are shared, one order."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from nilometer.errors import InputError
from nilometer_papers.algorithms.steam.shared_streams import SharedStreams
from nilometer_papers.algorithms.steam.source import TimedSource
from nilometer_papers.algorithms.steam.spilling_queue import SpillingQueue
from nilometer_papers.algorithms.steam.stream_manager import StreamManager
from nilometer_papers.algorithms.stream_tuple import StreamTuple


def numbered(number: int, stream: int = 0) -> StreamTuple:
    return StreamTuple(number, f"k{number % 7}", stream, number)


@pytest.mark.parametrize("limit", [4, 5, 16, 100])
def test_a_queue_that_spills_is_a_queue_of_limited_memory(limit: int) -> None:
    random, spilled = Random(limit), 0
    for _ in range(20):
        queue, expected, number = SpillingQueue(limit), deque[StreamTuple](), 0
        for _ in range(40):
            for _ in range(random.randint(0, limit)):
                queue.put(numbered(number))
                expected.append(numbered(number))
                number += 1
                assert queue.in_memory <= limit
            for _ in range(random.randint(0, limit)):
                assert queue.take() == (expected.popleft() if expected else None)
            assert len(queue) == len(expected)
        while expected:
            assert queue.take() == expected.popleft()
        assert queue.take() is None
        assert queue.on_disk == 0
        spilled += queue.spilled
    assert spilled > 0


def test_what_fits_is_not_written_to_disk() -> None:
    queue = SpillingQueue(100)
    for number in range(75):
        queue.put(numbered(number))
    assert (queue.spilled, queue.in_memory) == (0, 75)
    for number in range(75, 200):
        queue.put(numbered(number))
    assert queue.spilled > 0
    queue.flush()
    assert (len(queue), queue.take()) == (0, None)
    with pytest.raises(InputError, match="4 tuples or more"):
        SpillingQueue(3)


def test_tuples_are_kept_once_until_all_queues_have_given_them_out() -> None:
    pool = SharedStreams()
    manager = StreamManager(pool.make_queue)
    source = TimedSource([numbered(n) for n in range(10)], lambda: 100)
    queues = [manager.create_streams_queue() for _ in range(3)]
    for queue in queues:
        manager.register(source, queue)
    while manager.poll():
        pass
    assert (len(pool), pool.max_tuples, [len(queue) for queue in queues]) == (10, 10, [10] * 3)
    for queue in queues[:2]:
        assert [queue.take() for _ in range(11)] == [*map(numbered, range(10)), None]
    assert len(pool) == 10
    assert queues[2].take() == numbered(0)
    assert len(pool) == 9
    manager.unregister(queues[2])
    assert len(pool) == 0
