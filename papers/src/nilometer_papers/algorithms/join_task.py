"""The task of an algorithm: how many streams to join, under which windows and condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nilometer.model.network import Matrix, TimeNetwork
from nilometer.model.windows import RangeWindow, UniformWindow
from nilometer_papers.algorithms.conditions import Condition, SameKey


@dataclass(frozen=True)
class JoinTask:
    """A W-join; its windows are those of the network, closed: all pairs have bounds.

    >>> task = JoinTask.uniform(3, 10)
    >>> task.window, task.stream_windows
    (10, (10, 10, 10))
    >>> JoinTask.per_stream([5, 10]).stream_windows
    (5, 10)
    """

    network: TimeNetwork
    condition: Condition = field(default_factory=SameKey)
    rows: tuple[int, ...] | None = None
    """How many last tuples of each stream count, in a join of count-based windows."""

    @classmethod
    def uniform(cls, streams: int, window: int, condition: Condition | None = None) -> JoinTask:
        """All streams within one window of each other."""
        network = TimeNetwork(names(streams), (UniformWindow(window),))
        return cls(network, condition or SameKey())

    @classmethod
    def per_stream(cls, windows: Sequence[int], condition: Condition | None = None) -> JoinTask:
        """One window per stream, as in Golab: nothing older when the last member arrives."""
        streams = names(len(windows))
        ranges = tuple(RangeWindow(s, w) for s, w in zip(streams, windows, strict=True))
        return cls(TimeNetwork(streams, ranges), condition or SameKey())

    @classmethod
    def last_rows(cls, rows: Sequence[int], condition: Condition | None = None) -> JoinTask:
        """Count-based windows: the last tuples of each stream when the last member arrives."""
        streams = names(len(rows))
        network = TimeNetwork(streams, (), rows=frozenset(streams))
        return cls(network, condition or SameKey(), tuple(rows))

    @property
    def streams(self) -> int:
        """How many streams are joined."""
        return len(self.network.streams)

    @property
    def bounds(self) -> Matrix:
        """``time(j) - time(i) <= bounds[i][j]``."""
        return self.network.closed

    @property
    def window(self) -> int | None:
        """The one window of a uniform clique, None where windows differ."""
        windows = self.stream_windows
        return windows[0] if windows is not None and len(set(windows)) == 1 else None

    @property
    def stream_windows(self) -> tuple[int, ...] | None:
        """The window of each stream if it is the same against all others, otherwise None."""
        rows = [{b for j, b in enumerate(row) if j != i} for i, row in enumerate(self.bounds)]
        if self.rows is not None or any(len(row) != 1 for row in rows):
            return None
        return tuple(row.pop() for row in rows)


def names(streams: int) -> tuple[str, ...]:
    """Names as in the papers: A, B, C…"""
    return tuple(chr(ord("A") + i) for i in range(streams))
