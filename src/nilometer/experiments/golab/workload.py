"""The streams of Golab section 6.1, and windows that are full before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from nilometer.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.stream_tuple import StreamTuple
from nilometer.model.join_order import StreamLoad
from nilometer.model.time import EARLIEST

SCALE = (
    "A loop makes one tuple of a random stream, chosen with probability lambda_i / sum of "
    "lambdas, with the loop index as its time and a uniform value of 1..v_i (section 6.1). A unit "
    "of time is as many loops as the lambdas sum up to, so that window j holds lambda_j * T_j "
    "tuples, as in the cost model: with the loop index itself as the unit the windows would hold "
    "that many times fewer. Windows are filled before anything is measured."
)


@dataclass(frozen=True)
class Workload:
    """A query over generated streams: what fills its windows, and what is measured after it."""

    task: JoinTask
    unit: int
    """How much of the streams' clock a unit of time is: as many ticks as tuples come in it."""
    filling: tuple[StreamTuple, ...]
    measured: tuple[StreamTuple, ...]

    def fill(self, algorithm: JoinAlgorithm) -> JoinAlgorithm:
        """The algorithm, just built, with full windows; nothing is joined for that."""
        algorithm.load(self._saved())
        return algorithm

    @property
    def arrivals(self) -> tuple[StreamTuple, ...]:
        """All tuples, for what cannot be filled."""
        return self.filling + self.measured

    def _saved(self) -> Saved:
        streams = range(self.task.streams)
        tables = {str(i): singles(one for one in self.filling if one.stream == i) for i in streams}
        return Saved(tables | {f"new {i}": [] for i in streams}, {"interval": [EARLIEST]})


def make_workload(
    loads: Sequence[StreamLoad], tuples: int, seed: int, stale: float = 0
) -> Workload:
    """So many tuples to measure, after windows that are full and hold some units of old tuples."""
    unit = round(sum(load.rate for load in loads))
    task = JoinTask.per_stream([round(load.window * unit) for load in loads])
    lengths = [round((load.window + stale) * unit) for load in loads]
    start = max(lengths)
    stream = generate(loads, Random(seed))
    first = [next(stream) for _ in range(start)]
    filling = tuple(one for one in first if one.time >= start - lengths[one.stream])
    return Workload(task, unit, filling, tuple(next(stream) for _ in range(tuples)))


def generate(loads: Sequence[StreamLoad], random: Random) -> Iterator[StreamTuple]:
    """Tuples of streams at relative rates; the values of fewer are among those of more."""
    rates = [load.rate for load in loads]
    streams, numbers, time = range(len(loads)), [0] * len(loads), 0
    while True:
        (stream,) = random.choices(streams, rates)
        value = random.randint(1, round(loads[stream].distinct_of(0)))
        yield StreamTuple(time, value, stream, numbers[stream])
        numbers[stream] += 1
        time += 1
