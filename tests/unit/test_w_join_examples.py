"""The worked examples of TR-010, and the inputs on which TR-010 and SSDBM go wrong (errata).

The papers draw their examples without figures on the axes. The times here are chosen so that
they give what the text says about the drawing, with a window of 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow
from nilometer_papers.algorithms.join_algorithm import run
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

W = 10
AT_ONCE = ["NLW", "HW", "BEW", "BEW_HASH", "RIPPLE", "XJOIN", "NLW_PULLED", "HW_PULLED"]
UNIFORM = [name for name, one in ALGORITHMS.items() if one.windows is Windows.UNIFORM]
ANY = [name for name, one in ALGORITHMS.items() if one.windows is Windows.ANY]

BLACK, WHITE = "black", "white"


def read(names: str, times: Iterable[int], white: Sequence[str] = ()) -> list[StreamTuple]:
    """Tuples named as in the papers, a1 for the first of stream A; white ones join nothing."""
    return [
        StreamTuple(time, (WHITE, name) if name in white else BLACK, ord(name[0]) - ord("a"), n)
        for name, time in zip(names.split(), times, strict=True)
        for n in [int(name[1:])]
    ]


def names(results: Iterable[Result]) -> list[str]:
    return sorted(
        " ".join(f"{chr(ord('a') + one.stream)}{one.number}" for one in result)
        for result in results
    )


FIGURE_2 = read(
    "a1 b1 b2 b3 b4 c1 c2 c3 d1 d2 e1 e2 a2",
    (5, 12, 14, 18, 24, 16, 19, 22, 6, 19, 7, 18, 20),
    white=("a1", "b1", "c2"),
)


@pytest.mark.parametrize("name", AT_ONCE)
def test_the_iteration_of_a2_in_figure_2(name: str) -> None:
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(5, W))
    *before, a2 = FIGURE_2
    for one in before:
        algorithm.process(one)
    assert names(algorithm.process(a2)) == [
        f"a2 {b} {c} d2 e2" for b in ("b2", "b3", "b4") for c in ("c1", "c3")
    ]
    (b5,) = read("b5", [35])
    assert algorithm.process(b5) == []


@pytest.mark.parametrize(("name", "table"), [("NLW", "right 2"), ("BEW", "3")])
def test_d1_is_removed_while_stream_d_is_processed_in_figure_2(name: str, table: str) -> None:
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(5, W))
    *before, a2 = FIGURE_2
    for one in before:
        algorithm.process(one)
    assert [one.number for (one,) in algorithm.save().tables[table]] == [1, 2]
    algorithm.process(a2)
    assert [one.number for (one,) in algorithm.save().tables[table]] == [2]


@pytest.mark.parametrize("name", UNIFORM)
def test_the_anomaly_of_figure_3(name: str) -> None:
    """e1 is out of reach of b4, and still joins c2, which comes later."""
    arrivals = read("e1 a2 b2 d2 b4 c2", (10, 15, 14, 16, 25, 18))
    assert names(run(ALGORITHMS[name].start(JoinTask.uniform(5, W)), arrivals)) == [
        "a2 b2 c2 d2 e1"
    ]


@pytest.mark.parametrize("name", UNIFORM)
def test_erratum_a_tuple_ahead_of_the_other_streams_is_far_from_them_and_not_out(name: str) -> None:
    arrivals = read("b1 a1 a2", (100, 50, 95))
    assert names(run(ALGORITHMS[name].start(JoinTask.uniform(2, W)), arrivals)) == ["a2 b1"]


@pytest.mark.parametrize("name", UNIFORM)
def test_erratum_within_the_window_of_one_member_is_not_enough(name: str) -> None:
    arrivals = read("a1 b1 c1", (10, 18, 25))
    assert run(ALGORITHMS[name].start(JoinTask.uniform(3, W)), arrivals) == []


@pytest.mark.parametrize("name", ANY)
def test_erratum_a_stream_without_a_window_can_join_what_the_neighbours_left(name: str) -> None:
    steps = (PairWindow("A", "B", -W, W), PairWindow("B", "C", -W, W))
    task = JoinTask(TimeNetwork(("A", "B", "C"), steps))
    arrivals = read("a1 b1 b2 a2 c1", (0, 5, 90, 95, 10))
    assert names(run(ALGORITHMS[name].start(task), arrivals)) == ["a1 b1 c1"]


@pytest.mark.parametrize("name", ["NLW", "HW"])
def test_erratum_a_buffer_is_tidied_though_nothing_comes_from_below(name: str) -> None:
    """A and B never join, so no m_tuple ever makes the upper join scan the buffer of C."""
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(3, W))
    for n in range(100):
        for one in read(f"a{n} b{n} c{n}", [20 * n] * 3, white=(f"a{n}", f"b{n}")):
            algorithm.process(one)
    assert len(algorithm.save().tables["right 1"]) <= 2


@pytest.mark.parametrize("name", ["HW", "BEW_HASH"])
def test_erratum_a_bucket_is_updated_though_its_key_never_comes_again(name: str) -> None:
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(2, W))
    for n in range(100):
        for one in read(f"a{n} b{n}", [20 * n] * 2, white=(f"a{n}", f"b{n}")):
            algorithm.process(one)
    assert all(len(table) <= 2 for table in algorithm.save().tables.values())
