"""The common protocol of all join algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


@dataclass
class Saved:
    """Everything that a running algorithm remembers, in a form that can be stored."""

    tables: dict[str, list[Result]] = field(default_factory=dict)
    """Buffered tuples, each as a combination of one, and buffered combinations of several."""
    numbers: dict[str, list[int]] = field(default_factory=dict)


class JoinAlgorithm(ABC):
    """A running join: takes tuples one by one, and emits each result once.

    The tuples of one stream arrive in order of time; streams may be ahead of each other. A result
    is emitted with its last member or, if the algorithm waits for other streams, at the latest when
    all streams have passed it.
    """

    def __init__(self, task: JoinTask) -> None:
        self.task = task
        self.counters = Counters()

    @abstractmethod
    def process(self, arrival: StreamTuple) -> list[Result]:
        """Process one tuple; return the results that can be emitted now."""

    def reach(self, stream: int, time: int) -> list[Result]:
        """Note that a stream delivers nothing before a time; return the results that waited."""
        return []

    def finish(self) -> list[Result]:
        """Note that all streams have ended; return the results that waited."""
        return [one for i in range(self.task.streams) for one in self.reach(i, FOREVER)]

    @abstractmethod
    def save(self) -> Saved:
        """What `load` needs to continue from here."""

    @abstractmethod
    def load(self, saved: Saved) -> None:
        """Continue, in a new object, from where another one saved."""


def run(algorithm: JoinAlgorithm, arrivals: Iterable[StreamTuple]) -> list[Result]:
    """All results of streams that end."""
    results = [result for one in arrivals for result in algorithm.process(one)]
    return results + algorithm.finish()


def singles(tuples: Iterable[StreamTuple]) -> list[Result]:
    """Buffered tuples in the form in which they are saved."""
    return [(one,) for one in tuples]
