"""GCA and LCA: windows that differ by pair, filtered by longer ones and refined."""

from __future__ import annotations

from random import Random

import pytest

from nilometer.algorithms.bew_join import BEWJoin
from nilometer.algorithms.gca import GCA
from nilometer.algorithms.hw_join import HWJoin
from nilometer.algorithms.join_algorithm import JoinAlgorithm, run
from nilometer.algorithms.join_task import JoinTask, names
from nilometer.algorithms.lca import LCA
from nilometer.algorithms.mw_join import MWJoin
from nilometer.algorithms.nlw_join import NLWJoin
from nilometer.algorithms.registry import Windows
from nilometer.algorithms.stream_tuple import StreamTuple
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow
from tests.arrivals import Case, arrive, generate
from tests.unit.test_merge_joins import named, tuples


@pytest.mark.parametrize("base", [MWJoin, NLWJoin, HWJoin, BEWJoin])
def test_gca_takes_any_algorithm_for_one_window(base: type[JoinAlgorithm]) -> None:
    random = Random(f"GCA with {base.__name__}")
    for _ in range(30):
        case = generate(random, Windows.ANY)
        found = run(GCA(case.task, base), case.arrivals)
        assert sorted(found) == sorted(case.results)


def test_windows_that_are_missing_follow_from_those_that_are_given() -> None:
    """TR-010 figure 11: of four streams A has windows with B alone."""
    edges = [("A", "B", 3), ("B", "C", 2), ("C", "D", 4), ("B", "D", 5)]
    network = TimeNetwork(names(4), tuple(PairWindow(a, b, -w, w) for a, b, w in edges))
    random, found = Random("missing windows"), 0
    for _ in range(30):
        case = Case(JoinTask(network), tuple(arrive(random, 4)))
        expected = sorted(case.results)
        assert sorted(run(GCA(case.task), case.arrivals)) == expected
        assert sorted(run(LCA(case.task), case.arrivals)) == expected
        found += len(expected)
    assert found > 0


def test_lca_keeps_an_older_tuple_whose_window_is_longer() -> None:
    """The period of a1, b1, c1 ends with c1's window; a1 is older and still meets b2 and c2."""
    windows = (
        PairWindow("A", "B", -10, 10),
        PairWindow("A", "C", -5, 5),
        PairWindow("B", "C", -5, 5),
    )
    task = JoinTask(TimeNetwork(names(3), windows))
    arrivals = [*tuples(0, 0, 20), *tuples(1, 0, 9, 20), *tuples(2, 1, 5, 30)]
    algorithm = LCA(task)
    for one in arrivals[:5]:
        algorithm.process(one)
    assert named(algorithm.process(arrivals[5])) == ["a1 b1 c1"]
    assert algorithm.save().numbers["period"] == [-4, 6]
    assert named(algorithm.process(arrivals[6])) == ["a1 b1 c2"]
    assert named(algorithm.process(arrivals[7])) == ["a1 b2 c2"]


def test_lca_filters_with_shorter_windows_than_gca() -> None:
    network = TimeNetwork(
        names(3),
        (
            PairWindow("A", "B", -100, 100),
            PairWindow("A", "C", -50, 50),
            PairWindow("B", "C", -50, 50),
        ),
    )
    random = Random("filters")
    arrivals = sorted(StreamTuple(time, 0, random.randrange(3), time) for time in range(0, 2000, 5))
    gca, lca = GCA(JoinTask(network)), LCA(JoinTask(network))
    assert sorted(run(gca, arrivals)) == sorted(run(lca, arrivals))
    assert lca.counters.comparisons < gca.counters.comparisons
