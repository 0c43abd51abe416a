"""The one protocol of all join algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from nilometer.algorithms.counters import Counters
from nilometer.algorithms.join_task import JoinTask
from nilometer.algorithms.stream_tuple import Result, StreamTuple
from nilometer.model.time import FOREVER


@dataclass
class Saved:
    """All that a running algorithm remembers, in a form that can be stored."""

    tables: dict[str, list[Result]] = field(default_factory=dict)
    """Buffered tuples, each as a combination of one, and buffered combinations of several."""
    numbers: dict[str, list[int]] = field(default_factory=dict)


class JoinAlgorithm(ABC):
    """A running join: tuples go in one by one, results come out, each once.

    The tuples of one stream come in the order of time; streams may be ahead of each other.
    A result comes out with its last member, or, where the algorithm waits for other streams,
    at the latest when all streams have passed it.
    """

    def __init__(self, task: JoinTask) -> None:
        self.task = task
        self.counters = Counters()

    @abstractmethod
    def process(self, arrival: StreamTuple) -> list[Result]:
        """Take in one tuple; the results that can be told now."""

    def reach(self, stream: int, time: int) -> list[Result]:
        """Learn that a stream brings nothing before a time any more; the results that waited."""
        return []

    def finish(self) -> list[Result]:
        """Learn that all streams have ended; the results that waited."""
        return [one for i in range(self.task.streams) for one in self.reach(i, FOREVER)]

    @abstractmethod
    def save(self) -> Saved:
        """What `load` needs to go on from here."""

    @abstractmethod
    def load(self, saved: Saved) -> None:
        """Go on, just built, from where another saved."""


def run(algorithm: JoinAlgorithm, arrivals: Iterable[StreamTuple]) -> list[Result]:
    """All results of streams that end."""
    results = [result for one in arrivals for result in algorithm.process(one)]
    return results + algorithm.finish()


def singles(tuples: Iterable[StreamTuple]) -> list[Result]:
    """Buffered tuples as they are saved."""
    return [(one,) for one in tuples]
