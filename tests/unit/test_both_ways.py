"""A path in both directions: the union of two queries, each result once."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from nilometer_papers.algorithms.both_ways import BothWays
from nilometer_papers.algorithms.buffers import BufferType, HashBuffer, ListBuffer
from nilometer_papers.algorithms.conditions import Where
from nilometer_papers.algorithms.join_algorithm import run
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from tests.arrivals import arrive

KINDS = [ListBuffer, HashBuffer]


def follows(path: Result, windows: list[int]) -> bool:
    steps = zip(pairwise(path), windows, strict=True)
    return all(0 <= b.time - a.time <= w for (a, b), w in steps)


def expected(arrivals: list[StreamTuple], windows: list[int]) -> list[Result]:
    """All combinations with one key that follow the path there or back."""
    paths: list[Result] = [()]
    for stream in range(len(windows) + 1):
        line = [one for one in arrivals if one.stream == stream]
        paths = [
            (*some, one) for some in paths for one in line if {x.key for x in some} <= {one.key}
        ]
    both = [one for one in paths if follows(one, windows) or follows(one[::-1], windows[::-1])]
    return sorted(both)


def generated() -> list[tuple[list[StreamTuple], list[int]]]:
    random = Random("both ways")
    cases = []
    for _ in range(60):
        streams = random.randint(2, 4)
        cases.append((arrive(random, streams), [random.randint(0, 9) for _ in range(streams - 1)]))
    return cases


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_either_direction_each_once(kind: BufferType) -> None:
    there = back = same = 0
    for arrivals, windows in generated():
        algorithm = BothWays(windows, kind)
        results = run(algorithm, arrivals)
        assert sorted(results) == expected(arrivals, windows)
        assert algorithm.counters.tuples == len(arrivals)
        assert algorithm.counters.results == len(results)
        there += sum(one[0].time < one[-1].time for one in results)
        back += sum(one[0].time > one[-1].time for one in results)
        same += sum(one[0].time == one[-1].time for one in results)
    assert min(there, back, same) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_saving_and_loading_changes_nothing(kind: BufferType) -> None:
    random = Random("restarts both ways")
    for arrivals, windows in generated()[:20]:
        algorithm, results = BothWays(windows, kind), []
        for arrival in arrivals:
            results += algorithm.process(arrival)
            if random.random() < 0.3:
                successor = BothWays(windows, kind)
                successor.load(algorithm.save())
                algorithm = successor
        assert sorted(results) == expected(arrivals, windows)


def test_a_result_with_equal_times_follows_the_path_in_both_directions() -> None:
    """Erratum: the union that the paper asks for would have it twice."""
    arrivals = [StreamTuple(7, "x", stream, 0) for stream in range(4)]
    assert run(BothWays([1, 1, 1]), arrivals) == [tuple(arrivals)]


def test_a_condition_sees_the_streams_in_their_order_in_both_directions() -> None:
    less = Where(lambda a, b: a.key < b.key)
    arrivals = [StreamTuple(time, key, stream, 0) for time, key, stream in ((9, 1, 0), (8, 2, 1))]
    assert len(run(BothWays([5], condition=less), arrivals)) == 1
    arrivals = [StreamTuple(time, key, stream, 0) for time, key, stream in ((9, 2, 0), (8, 1, 1))]
    assert run(BothWays([5], condition=less), arrivals) == []


def test_a_clock_empties_the_buffers_of_both_directions() -> None:
    algorithm = BothWays([5, 5])
    for stream in range(3):
        algorithm.process(StreamTuple(1, "x", stream, 0))
    assert any(algorithm.save().tables.values())
    algorithm.finish()
    assert not any(algorithm.save().tables.values())
