"""StreamsQueue: what a stream manager has for one StreamScan (STEAM section 5)."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from nilometer.algorithms.stream_tuple import StreamTuple


class StreamsQueue(Protocol):
    """Tuples of all streams that are attached to one scan, in the order in which they came."""

    attached: int
    """How many streams still bring tuples."""

    def put(self, one: StreamTuple) -> None:
        """Take in a tuple at the tail."""

    def take(self) -> StreamTuple | None:
        """Give out the tuple at the head, if there is one."""

    def flush(self) -> None:
        """Throw away what is there."""

    def __len__(self) -> int: ...


class MemoryQueue:
    """A queue without a limit."""

    def __init__(self) -> None:
        self.attached = 0
        self._tuples: deque[StreamTuple] = deque()

    def put(self, one: StreamTuple) -> None:
        self._tuples.append(one)

    def take(self) -> StreamTuple | None:
        return self._tuples.popleft() if self._tuples else None

    def flush(self) -> None:
        self._tuples.clear()

    def __len__(self) -> int:
        return len(self._tuples)
