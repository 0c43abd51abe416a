"""Several algorithms and the columnar engine on the same arrivals, checked against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import COLUMNAR, serve_columnar
from nilometer_papers.experiments.experiment import Row, Setting
from nilometer_papers.experiments.service import Block, Service, check_same, serve

Start = Callable[[JoinTask], JoinAlgorithm]
Starts = Mapping[str, Start]
"""How to start each algorithm."""

Run = Callable[[Sequence[StreamTuple]], Service]
"""How to process and time arrivals."""


def from_registry(*names: str) -> Starts:
    """Algorithms with their defaults."""
    return {name: ALGORITHMS[name].start for name in names}


def contest(
    setting: Setting,
    title: str,
    task: JoinTask,
    arrivals: Sequence[StreamTuple],
    starts: Starts,
) -> dict[str, Service]:
    """The service of each algorithm, and last of the engine; all return the same results."""

    def run_with(start: Start) -> Run:
        return lambda tuples: serve(start(task), tuples)

    runs = {name: run_with(start) for name, start in starts.items()}
    runs[COLUMNAR] = lambda tuples: serve_columnar(task, tuples)
    return take_turns(setting, title, arrivals, runs)


def take_turns(
    setting: Setting, title: str, arrivals: Sequence[StreamTuple], runs: Mapping[str, Run]
) -> dict[str, Service]:
    """Run all several times, in turns, to reduce the influence of the machine's other work."""
    done: dict[str, list[Service]] = {name: [] for name in runs}
    turns = list(runs) * setting.choose(3, 2, 1)
    for name in setting.progress.track(turns, title):
        done[name].append(runs[name](arrivals))
    services = {name: quickest(same) for name, same in done.items()}
    check_same(services)
    return services


def quickest(runs: Sequence[Service]) -> Service:
    """One service out of several equal ones: the least time of each block."""
    blocks = (min(same, key=_time) for same in zip(*(run.blocks for run in runs), strict=True))
    return replace(runs[0], blocks=tuple(blocks))


def _time(block: Block) -> float:
    return block.microseconds


def curve_rows(services: Mapping[str, Service], **labels: str | int | float) -> list[Row]:
    """A row for every thousand tuples."""
    return [
        {
            **labels,
            "algorithm": name,
            "processed": block.processed,
            "microseconds": round(block.microseconds, 3),
            "comparisons": round(block.comparisons, 2),
            "results": block.results,
        }
        for name, service in services.items()
        for block in service.blocks
    ]


def steady_rows(services: Mapping[str, Service], **labels: str | int | float) -> list[Row]:
    """A row for each algorithm: means over the second half, when windows are full."""
    return [
        {
            **labels,
            "algorithm": name,
            "microseconds": round(steady.microseconds, 3),
            "comparisons": round(steady.comparisons, 2),
            "results": service.results,
        }
        for name, service in services.items()
        for steady in (second_half(service),)
    ]


def second_half(service: Service) -> Service:
    """A service without its first blocks, in which windows fill."""
    half = service.blocks[len(service.blocks) // 2 :]
    return Service(half, sum(block.results for block in half), service.fingerprint)
