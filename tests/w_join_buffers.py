"""What the buffers of the W-joins may and must hold, stated independently of the algorithms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

LEFT_DEEP = {"NLW", "HW", "XJOIN", "NLW_PATH", "HW_PATH", "NLW_PULLED", "HW_PULLED", "HW_BUCKETS"}
HASHED = {"HW", "BEW_HASH", "HW_PATH", "HW_PULLED", "HW_BUCKETS"}


@dataclass
class Books:
    """All arrivals, and what they imply for the buffers of one algorithm.

    The tables of a pipeline are `left i`, combinations of the streams up to i, and `right i`,
    tuples of the stream after it; those of the other algorithms are the streams.
    """

    name: str
    task: JoinTask
    arrived: list[list[StreamTuple]] = field(default_factory=list)
    newest: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arrived = [[] for _ in range(self.task.streams)]
        self.newest = [EARLIEST] * self.task.streams

    def enter(self, arrival: StreamTuple) -> None:
        self.arrived[arrival.stream].append(arrival)
        self.newest[arrival.stream] = arrival.time

    @property
    def tables(self) -> list[str]:
        if self.name in LEFT_DEEP:
            return [f"{side} {i}" for i in range(self.task.streams - 1) for side in _SIDES]
        return [str(i) for i in range(self.task.streams)]

    def ever(self, table: str) -> list[Result]:
        """All that a table could hold if nothing were ever removed."""
        side, place = _parse(table)
        if side == "left":
            return self.combinations(range(place + 1))
        return [(one,) for one in self.arrived[place + (side == "right")]]

    def is_out(self, table: str, members: Result) -> bool:
        """Whether nothing that is still to come can join this where it waits."""
        return self.time(members) < self.oldest(table)

    def time(self, members: Result) -> int:
        """The time by which a combination ages."""
        return members[-1].time if self._is_path else min(one.time for one in members)

    def oldest(self, table: str) -> int:
        """The earliest time of what can still be joined, by the newest of those it waits for."""
        side, place = _parse(table)
        if side == "left":
            return self.newest[place + 1] - self.task.bounds[place][place + 1]
        if side == "right":
            back = 0 if self._is_path else self.task.bounds[place + 1][place]
            return min(self.newest[: place + 1]) - back
        others = (i for i in range(self.task.streams) if i != place)
        return min(self.newest[i] - self.task.bounds[place][i] for i in others)

    def visited(self, arrival: StreamTuple) -> list[str]:
        """Where the arrival, and the combinations it produces, look for partners."""
        streams, stream = self.task.streams, arrival.stream
        if self.name in LEFT_DEEP:
            first = f"left {stream - 1}" if stream else "right 0"
            upper = range(max(stream, 1), streams - 1)
            return [first] + [f"right {i}" for i in upper if self._makes(arrival, range(i + 1))]
        cycle = [(stream + i) % streams for i in range(streams)]
        if self.name == "GRAPH_BEW":
            return [str(min(self._neighbours(stream)))]
        steps = range(1, streams)
        return [str(cycle[i]) for i in steps if self._makes(arrival, cycle[:i])]

    def _neighbours(self, stream: int) -> list[int]:
        given = self.task.network.given
        pairs = [(i, min(given[i][stream], given[stream][i])) for i in range(len(given))]
        return [i for i, bound in pairs if i != stream and bound < 1_000_000]

    def combinations(self, streams: Iterable[int]) -> list[Result]:
        """All matching combinations of some streams, in the order of these."""
        given, combinations = self.task.network.given, [()]
        for stream in streams:
            combinations = [
                (*some, one)
                for some in combinations
                for one in self.arrived[stream]
                if all(
                    each.key == one.key
                    and one.time - each.time <= given[each.stream][stream]
                    and each.time - one.time <= given[stream][each.stream]
                    for each in some
                )
            ]
        return combinations

    def _makes(self, arrival: StreamTuple, streams: Iterable[int]) -> bool:
        return any(arrival in one for one in self.combinations(streams))

    @property
    def _is_path(self) -> bool:
        return self.name.endswith("PATH")


_SIDES = ("left", "right")


def _parse(table: str) -> tuple[str, int]:
    side, _, place = table.rpartition(" ")
    return side, int(place)
