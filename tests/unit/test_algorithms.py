"""Every algorithm of the papers gives exactly the results there are, each once."""

from __future__ import annotations

from random import Random

import pytest

from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, run
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.stream_tuple import Result
from tests.arrivals import Case, generate

CASES = 60

ALL = [name for name, one in ALGORITHMS.items() if one.windows is not Windows.ROWS]


def numbers(results: list[Result]) -> list[tuple[int, ...]]:
    return sorted(tuple(one.number for one in result) for result in results)


def cases(name: str) -> list[Case]:
    random = Random(f"cases of {name}")
    return [generate(random, ALGORITHMS[name].windows) for _ in range(CASES)]


@pytest.mark.parametrize("name", ALL)
def test_results_are_those_of_the_oracle_each_once(name: str) -> None:
    count = 0
    for case in cases(name):
        algorithm = ALGORITHMS[name].start(case.task)
        results = run(algorithm, case.arrivals)
        assert numbers(results) == case.expected
        assert all(one.stream == i for result in results for i, one in enumerate(result))
        assert algorithm.counters.results == len(results)
        assert algorithm.counters.tuples == len(case.arrivals)
        count += len(results)
    assert count > CASES


@pytest.mark.parametrize("name", ALL)
def test_saving_and_loading_changes_nothing(name: str) -> None:
    random = Random(f"restarts of {name}")
    for case in cases(name)[:20]:
        algorithm, results = ALGORITHMS[name].start(case.task), []
        for arrival in case.arrivals:
            results += algorithm.process(arrival)
            if random.random() < 0.2:
                algorithm = _restart(algorithm, name)
        assert numbers(results + algorithm.finish()) == case.expected


@pytest.mark.parametrize("name", ALL)
def test_results_come_at_the_latest_when_all_streams_have_passed_them(name: str) -> None:
    random = Random(f"clocks of {name}")
    for case in cases(name)[:20]:
        algorithm = ALGORITHMS[name].start(case.task)
        cut = random.randint(0, len(case.arrivals))
        results = [one for arrival in case.arrivals[:cut] for one in algorithm.process(arrival)]
        rest = [[one.time for one in case.arrivals[cut:] if one.stream == i] for i in range(6)]
        reached = [min(rest[i], default=10_000) for i in range(case.task.streams)]
        for stream, time in enumerate(reached):
            results += algorithm.reach(stream, time)
        emitted = set(numbers(results))
        for result in Case(case.task, case.arrivals[:cut]).results:
            if max(one.time for one in result) < min(reached):
                assert tuple(one.number for one in result) in emitted


def _restart(algorithm: JoinAlgorithm, name: str) -> JoinAlgorithm:
    successor = ALGORITHMS[name].start(algorithm.task)
    successor.load(algorithm.save())
    return successor
