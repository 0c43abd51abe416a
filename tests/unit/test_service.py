"""Times are reported only of algorithms that give the same results."""

from __future__ import annotations

import pytest

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import serve_columnar
from nilometer_papers.experiments.service import Service, WrongResultsError, check_same, serve
from nilometer_papers.experiments.workloads.exponential import SECOND, Rate, exponential_streams

TASK = JoinTask.uniform(2, SECOND)


def service(arrivals: list[StreamTuple]) -> Service:
    return serve(ALGORITHMS["HW"].start(TASK), arrivals, block=100)


def test_the_same_results_in_any_order_are_the_same() -> None:
    arrivals = exponential_streams([Rate(50, 5)] * 2, 500, seed=1)
    merge = serve(ALGORITHMS["MW"].start(TASK), arrivals, block=100)
    columnar = serve_columnar(TASK, arrivals, batch=100)
    assert merge.results > 100
    check_same({"HW": service(arrivals), "MW": merge, "columnar": columnar})


def test_as_many_results_with_another_tuple_are_refused() -> None:
    first = [StreamTuple(0, 1, 0, 0), StreamTuple(0, 1, 1, 0)]
    other = [StreamTuple(0, 1, 0, 0), StreamTuple(0, 1, 1, 7)]
    with pytest.raises(WrongResultsError, match="algorithms give different results"):
        check_same({"right": service(first), "wrong": service(other)})


def test_a_result_that_comes_twice_is_refused() -> None:
    right = service([StreamTuple(0, 1, 0, 0), StreamTuple(0, 1, 1, 0)])
    twice = Service(right.blocks, 2, right.fingerprint)
    with pytest.raises(WrongResultsError):
        check_same({"right": right, "twice": twice})
