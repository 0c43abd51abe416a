"""Several algorithms and the columnar engine on the same arrivals, checked against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nilometer.algorithms.join_algorithm import JoinAlgorithm
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.registry import find_algorithm
from nilometer.algorithms.stream_tuple import StreamTuple
from nilometer.experiments.columnar import COLUMNAR, serve_columnar
from nilometer.experiments.experiment import Row, Setting
from nilometer.experiments.service import Service, check_same, serve

Starts = Mapping[str, Callable[[JoinTask], JoinAlgorithm]]
"""How each algorithm is started."""


def from_registry(*names: str) -> Starts:
    """Algorithms as they are by default."""
    return {name: find_algorithm(name).start for name in names}


def contest(
    setting: Setting,
    title: str,
    task: JoinTask,
    arrivals: Sequence[StreamTuple],
    starts: Starts,
) -> dict[str, Service]:
    """The service of each algorithm, and last that of the engine; all give the same results."""
    services = {}
    for name in setting.progress.track([*starts, COLUMNAR], title):
        services[name] = (
            serve_columnar(task, arrivals)
            if name == COLUMNAR
            else serve(starts[name](task), arrivals)
        )
    check_same(services)
    return services


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
