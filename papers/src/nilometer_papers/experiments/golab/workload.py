"""The streams of Golab section 6.1, and windows that are full before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from nilometer.model.join_cost import StreamLoad
from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import StreamTuple

_AFTER_ALL = 1 << 40
"""Numbers from here on belong to tuples of no stream."""

SCALE = (
    "A loop makes one tuple of a random stream, chosen with probability lambda_i / sum of "
    "lambdas, with the loop index as its time and a uniform value of 1..v_i (section 6.1). A unit "
    "of time is as many loops as the lambdas sum up to, so that window j holds lambda_j * T_j "
    "tuples, as in the cost model: with the loop index itself as the unit the windows would hold "
    "that many times fewer. Windows are filled before anything is measured."
)


@dataclass(frozen=True)
class Workload:
    """A query over generated streams: tuples that fill its windows, and those measured after."""

    task: JoinTask
    unit: int
    """The length of a unit of time in ticks: one tick for each tuple that arrives in it."""
    filling: tuple[StreamTuple, ...]
    measured: tuple[StreamTuple, ...]

    def fill(self, algorithm: JoinAlgorithm) -> JoinAlgorithm:
        """The new algorithm with full windows; nothing is joined for that."""
        algorithm.load(self._saved)
        return algorithm

    @property
    def arrivals(self) -> tuple[StreamTuple, ...]:
        """All tuples, for engines that cannot be filled."""
        return self.filling + self.measured

    @cached_property
    def _saved(self) -> Saved:
        streams = range(self.task.streams)
        tables = {str(i): singles(one for one in self.filling if one.stream == i) for i in streams}
        return Saved(tables | {f"new {i}": [] for i in streams}, {"interval": [EARLIEST]})


def make_workload(loads: Sequence[StreamLoad], tuples: int, seed: int, part: int = 0) -> Workload:
    """This many tuples to measure, after others that fill the windows."""
    unit = round(sum(load.rate for load in loads))
    task = JoinTask.per_stream([round(load.window * unit) for load in loads])
    lengths = task.stream_windows
    assert lengths is not None
    stream = generate(loads, Random(f"{seed} {part}"))
    first = [next(stream) for _ in range(max(lengths))]
    filling = tuple(one for one in first if one.time >= len(first) - lengths[one.stream])
    return Workload(task, unit, filling, tuple(next(stream) for _ in range(tuples)))


def make_workloads(
    loads: Sequence[StreamLoad], parts: int, tuples: int, seed: int
) -> list[Workload]:
    """Several workloads: windows change slowly, so the content of one of them is a small sample."""
    return [make_workload(loads, tuples, seed, part) for part in range(parts)]


def with_even_origins(workload: Workload, loads: Sequence[StreamLoad], seed: int) -> Workload:
    """The same windows, then equal numbers of new tuples of each stream.

    Tuples of slow streams are few and each is expensive: to estimate a cost by its origins, all are
    sampled equally.
    """
    random, streams = Random(f"{seed} even"), len(loads)
    measured = tuple(
        StreamTuple(
            one.time, _value(loads[place % streams], random), place % streams, _AFTER_ALL + place
        )
        for place, one in enumerate(workload.measured)
    )
    return replace(workload, measured=measured)


def generate(loads: Sequence[StreamLoad], random: Random) -> Iterator[StreamTuple]:
    """Tuples of streams at relative rates; the values of fewer are among those of more."""
    rates = [load.rate for load in loads]
    streams, numbers, time = range(len(loads)), [0] * len(loads), 0
    while True:
        (stream,) = random.choices(streams, rates)
        yield StreamTuple(time, _value(loads[stream], random), stream, numbers[stream])
        numbers[stream] += 1
        time += 1


def _value(load: StreamLoad, random: Random) -> int:
    return random.randint(1, round(load.distinct_of(0)))
