"""The maximum input rate: tuples per second of CPU time, with full windows (Golab section 6.1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import process_time_ns
from typing import TypeVar

from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.algorithms.stream_tuple import Result
from nilometer_papers.experiments.columnar import serve_columnar
from nilometer_papers.experiments.golab.workload import Workload
from nilometer_papers.experiments.service import (
    Block,
    Service,
    check_same,
    fingerprint_of,
    no_garbage_collection,
    serve,
)

Make = Callable[[JoinTask], JoinAlgorithm]
Name = TypeVar("Name", bound=Hashable)

BATCH = 1000
"""The number of tuples in a micro-batch of the columnar engine."""


@dataclass(frozen=True)
class Run:
    """One algorithm on a workload."""

    rate: float
    """Tuples per second."""
    visited: float
    """Tuples compared per arriving tuple."""
    service: Service


def run(make: Make, workloads: Sequence[Workload]) -> Run:
    """Measure from full windows; work that waits for the end of an interval counts, too."""
    spent = visited = compared = 0
    results: list[Result] = []
    with no_garbage_collection():
        for workload in workloads:
            algorithm = workload.fill(make(workload.task))
            began = process_time_ns()
            for arrival in workload.measured:
                results += algorithm.process(arrival)
            results += algorithm.finish()
            spent += process_time_ns() - began
            visited += algorithm.counters.visited
            compared += algorithm.counters.comparisons
    tuples = sum(len(workload.measured) for workload in workloads)
    block = Block(tuples, spent / 1000 / tuples, compared / tuples, len(results))
    service = Service((block,), len(results), fingerprint_of(results))
    return Run(1e9 * tuples / spent, visited / tuples, service)


def best_rates(
    makes: Mapping[Name, Make], workloads: Sequence[Workload], turns: Iterable[int]
) -> dict[Name, Run]:
    """All algorithms in turns, so many times; they must give the same results.

    The fastest turn counts, where the paper averages: other work of the machine only slows it.
    """
    rounds = [{name: run(make, workloads) for name, make in makes.items()} for _ in turns]
    for one in rounds:
        check_same({str(name): result.service for name, result in one.items()})
    return {
        name: Run(max(one[name].rate for one in rounds), first.visited, first.service)
        for name, first in rounds[0].items()
    }


def columnar_rate(workload: Workload) -> float:
    """The rate of the columnar engine over the last half of all tuples, its results checked."""
    batch = min(BATCH, len(workload.arrivals) // 4)
    arrivals = workload.arrivals[: len(workload.arrivals) // batch * batch]
    columnar = serve_columnar(workload.task, arrivals, batch)
    check_same({"columnar": columnar, "hash": serve(MultiwayHashJoin(workload.task), arrivals)})
    half = columnar.blocks[len(columnar.blocks) // 2 :]
    return 1e6 * len(half) / sum(block.microseconds for block in half)
