"""StreamsQueue: the queue that a stream manager has for one StreamScan (STEAM section 5)."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from nilometer_papers.algorithms.stream_tuple import StreamTuple


class StreamsQueue(Protocol):
    """Tuples of all streams attached to one scan, in the order of arrival."""

    attached: int
    """How many streams still deliver tuples."""

    def put(self, one: StreamTuple) -> None:
        """Append a tuple at the tail."""

    def take(self) -> StreamTuple | None:
        """Remove the tuple at the head, if there is one."""

    def flush(self) -> None:
        """Discard all tuples."""

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
