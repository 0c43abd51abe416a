"""The largest rate of arrivals that an algorithm can sustain (SSDBM, section on throughput)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import COLUMNAR, RunningColumns, serve_columnar
from nilometer_papers.experiments.contest import Starts, quickest, second_half
from nilometer_papers.experiments.experiment import Row, Setting
from nilometer_papers.experiments.service import Service, check_same, serve
from nilometer_papers.experiments.workloads.exponential import SECOND, Rate, exponential_streams

FIRST_RATE = 2000.0
LEAST_TUPLES = 2000
STEEPEST = 6.0


@dataclass(frozen=True)
class Load:
    """Joins of a number of streams of equal rates under one window (microseconds)."""

    streams: int
    window: int
    values: int

    @property
    def task(self) -> JoinTask:
        """The join."""
        return JoinTask.uniform(self.streams, self.window)

    def arrivals(self, rate: float, tuples: int, seed: int) -> list[StreamTuple]:
        """A number of tuples at a total rate."""
        streams = [Rate(rate / self.streams, self.values)] * self.streams
        return exponential_streams(streams, tuples, seed)

    def serve(self, name: str, starts: Starts, arrivals: Sequence[StreamTuple]) -> Service:
        """Service of an algorithm, or of the engine."""
        if name == COLUMNAR:
            return serve_columnar(self.task, arrivals)
        return serve(starts[name](self.task), arrivals, block=500)

    def microseconds(self, name: str, starts: Starts, rate: float, setting: Setting) -> float:
        """Service time at a total rate over two windows, which are full in the second."""
        tuples = max(LEAST_TUPLES, int(2 * rate * self.window / SECOND))
        arrivals = self.arrivals(rate, tuples, setting.seed)
        if name == COLUMNAR:
            return _feed(self.task, arrivals)
        runs = [self.serve(name, starts, arrivals) for _ in range(setting.choose(2, 2, 1))]
        return second_half(quickest(runs)).microseconds

    def largest_rate(self, name: str, starts: Starts, setting: Setting) -> float:
        """The rate up to which an algorithm keeps up with all that comes."""
        steps = setting.choose(6, 4, 1)
        return largest_rate(lambda rate: self.microseconds(name, starts, rate, setting), steps)


def _feed(task: JoinTask, arrivals: Sequence[StreamTuple]) -> float:
    """The engine's microseconds per tuple in the second half; too many results to look at."""
    engine, batch, middle = RunningColumns(task), 1000, len(arrivals) // 2
    for first in range(0, middle, batch):
        engine.feed(arrivals[first : min(first + batch, middle)])
    spent = [engine.feed(arrivals[at : at + batch]) for at in range(middle, len(arrivals), batch)]
    return sum(spent) / (len(arrivals) - middle)


def check_at_first_rate(load: Load, starts: Starts, setting: Setting) -> None:
    """Refuse to continue if the algorithms and the engine disagree."""
    arrivals = load.arrivals(FIRST_RATE, LEAST_TUPLES, setting.seed)
    check_same({name: load.serve(name, starts, arrivals) for name in [*starts, COLUMNAR]})


def measure_throughput(setting: Setting, starts: Starts, window: int, values: int) -> list[Row]:
    """The largest rate for each algorithm and the engine, by the number of streams."""
    rows: list[Row] = []
    streams = setting.choose((2, 3, 4, 5, 6), (2, 3, 4), (2, 3))
    for number in setting.progress.track(streams, "number of streams"):
        load, names = Load(number, window, values), [*starts, COLUMNAR]
        check_at_first_rate(load, starts, setting)
        for name in setting.progress.track(names, f"{number} streams"):
            rate = load.largest_rate(name, starts, setting)
            rows.append({"streams": number, "algorithm": name, "per_second": round(rate)})
    return rows


def largest_rate(microseconds: Callable[[float], float], steps: int) -> float:
    """The rate at which serving a tuple takes as long as the next one needs to arrive.

    Service times grow with rates as windows hold more: a power of the rate through the last two
    points determines the next rate to try.

    >>> round(largest_rate(lambda rate: 0.01 * rate, steps=3))
    10000
    """
    rate, took = FIRST_RATE, microseconds(FIRST_RATE)
    following = sqrt(rate * SECOND / took)
    for _ in range(steps):
        after = microseconds(following)
        slope = min(max(log(after / took) / log(following / rate), 0.0), STEEPEST)
        rate, took = following, after
        following = (SECOND / took * rate**slope) ** (1 / (slope + 1))
        if abs(following / rate - 1) < 0.01:
            break
    return float(following)
