"""GCA and LCA: windows that differ by pair, filtered by longer ones and refined."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow
from nilometer_papers.algorithms.bew_join import BEWJoin
from nilometer_papers.algorithms.gca import GCA
from nilometer_papers.algorithms.hw_join import HWJoin
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, run
from nilometer_papers.algorithms.join_task import JoinTask, names
from nilometer_papers.algorithms.lca import LCA
from nilometer_papers.algorithms.mw_join import MWJoin
from nilometer_papers.algorithms.nlw_join import NLWJoin
from nilometer_papers.algorithms.registry import Windows
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from tests.arrivals import Case, arrive, generate
from tests.unit.test_merge_joins import buffers, check_nothing_is_lost, mode, named, tuples


@pytest.mark.parametrize("base", [MWJoin, NLWJoin, HWJoin, BEWJoin])
def test_gca_takes_any_algorithm_for_one_window(base: type[JoinAlgorithm]) -> None:
    random = Random(f"GCA with {base.__name__}")
    for _ in range(30):
        case = generate(random, Windows.ANY)
        results = run(GCA(case.task, base), case.arrivals)
        assert sorted(results) == sorted(case.results)


def test_windows_that_are_missing_follow_from_those_that_are_given() -> None:
    """TR-010 figure 11: of four streams A has windows with B alone."""
    edges = [("A", "B", 3), ("B", "C", 2), ("C", "D", 4), ("B", "D", 5)]
    network = TimeNetwork(names(4), tuple(PairWindow(a, b, -w, w) for a, b, w in edges))
    random, count = Random("missing windows"), 0
    for _ in range(30):
        case = Case(JoinTask(network), tuple(arrive(random, 4)))
        expected = sorted(case.results)
        assert sorted(run(GCA(case.task), case.arrivals)) == expected
        assert sorted(run(LCA(case.task), case.arrivals)) == expected
        count += len(expected)
    assert count > 0


def c_is_closer(scale: int = 1) -> JoinTask:
    """A and B may be twice as far from each other as from C."""
    lengths = {("A", "B"): 10 * scale, ("A", "C"): 5 * scale, ("B", "C"): 5 * scale}
    windows = tuple(PairWindow(a, b, -w, w) for (a, b), w in lengths.items())
    return JoinTask(TimeNetwork(names(3), windows))


def test_lca_keeps_an_older_tuple_whose_window_is_longer() -> None:
    """The period of a1, b1, c1 ends with c1's window; a1 is older and still meets b2 and c2."""
    arrivals = [*tuples(0, 0, 20), *tuples(1, 0, 9, 20), *tuples(2, 1, 5, 30)]
    algorithm = LCA(c_is_closer())
    for one in arrivals[:5]:
        algorithm.process(one)
    assert named(algorithm.process(arrivals[5])) == ["a1 b1 c1"]
    assert algorithm.save().numbers["period"] == [-4, 6]
    assert named(algorithm.process(arrivals[6])) == ["a1 b1 c2"]
    assert named(algorithm.process(arrivals[7])) == ["a1 b2 c2"]


def test_lca_begins_a_period_at_a_tuple_whose_own_window_does_not_reach_back() -> None:
    """c1 is in the windows of a1 and b1, but they are not in its own."""
    algorithm = LCA(c_is_closer())
    for one in (*tuples(0, 0), *tuples(1, 0), *tuples(2, 7)):
        assert algorithm.process(one) == []
    assert mode(algorithm) == 1
    assert algorithm.save().numbers["period"] == [7 - 5, 7 + 5]


def test_the_sweep_of_lca_ends() -> None:
    """c1 is right of b1, and e1 of d1: periods that forget would begin at c1 and e1 for ever."""
    length = {"C": 3, "D": 4}
    windows = [
        PairWindow(a, b, -w, w)
        for a, b in combinations(names(5), 2)
        for w in [min(length.get(a, 6), length.get(b, 6))]
    ]
    algorithm = LCA(JoinTask(TimeNetwork(names(5), tuple(windows))))
    lines = (tuples(1, 0, 5), tuples(2, 4), tuples(3, 1, 5), tuples(4, 6), tuples(0, 3))
    results = [result for line in lines for one in line for result in algorithm.process(one)]
    assert named(results) == ["a1 b2 c1 d2 e1"]


def test_lca_filters_with_shorter_windows_than_gca() -> None:
    random = Random("filters")
    arrivals = [StreamTuple(time, 0, random.randrange(3), time) for time in range(0, 2000, 5)]
    gca, lca = GCA(c_is_closer(10)), LCA(c_is_closer(10))
    assert sorted(run(gca, arrivals)) == sorted(run(lca, arrivals))
    assert lca.counters.comparisons < gca.counters.comparisons


def test_lca_starts_where_the_windows_of_both_of_any_two_reach() -> None:
    random, periods = Random("starting tuples of LCA"), 0
    for _ in range(40):
        case = generate(random, Windows.ANY)
        algorithm, to_come = LCA(case.task), set(case.results)
        reach = [case.task.network.local_window(i) for i in range(case.task.streams)]
        for count, arrival in enumerate(case.arrivals, 1):
            to_come -= set(algorithm.process(arrival))
            check_nothing_is_lost(algorithm, to_come, case.arrivals[:count])
            if mode(algorithm) == 1:
                continue
            starting = [line[0].time for line in buffers(algorithm)]
            periods += 1
            for i, j in combinations(range(case.task.streams), 2):
                assert abs(starting[i] - starting[j]) <= min(reach[i], reach[j])
            end = min(time + window for time, window in zip(starting, reach, strict=True))
            assert all(one.time <= end for line in buffers(algorithm) for one in line)
    assert periods > 0
