"""StreamBuffers that several StreamsQueues refer to (STEAM section 5.2, the second scheme)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nilometer_papers.algorithms.stream_tuple import StreamTuple

Reference = tuple[int, int]
"""A stream, and a tuple of it."""


@dataclass
class SharedTuple:
    """A tuple in its stream's buffer, and how many queues still refer to it."""

    value: StreamTuple
    count: int = 0


class SharedStreams:
    """Keeps each tuple once, until all queues that refer to it have released it."""

    def __init__(self) -> None:
        self._buffers: dict[Reference, SharedTuple] = {}
        self.max_tuples = 0
        """The largest number of tuples kept at once."""

    def __len__(self) -> int:
        return len(self._buffers)

    def make_queue(self) -> ReferringQueue:
        """A queue for a scan."""
        return ReferringQueue(self)

    def refer(self, one: StreamTuple) -> Reference:
        """Keep a tuple for one more queue."""
        reference = one.stream, one.number
        shared = self._buffers.setdefault(reference, SharedTuple(one))
        shared.count += 1
        self.max_tuples = max(self.max_tuples, len(self._buffers))
        return reference

    def release(self, reference: Reference) -> StreamTuple:
        """Give a tuple to one queue; after the last one it is dropped."""
        shared = self._buffers[reference]
        shared.count -= 1
        if not shared.count:
            del self._buffers[reference]
        return shared.value


class ReferringQueue:
    """A queue that holds references, not tuples."""

    def __init__(self, streams: SharedStreams) -> None:
        self.attached = 0
        self._streams = streams
        self._references: deque[Reference] = deque()

    def put(self, one: StreamTuple) -> None:
        self._references.append(self._streams.refer(one))

    def take(self) -> StreamTuple | None:
        return self._streams.release(self._references.popleft()) if self._references else None

    def flush(self) -> None:
        while self._references:
            self._streams.release(self._references.popleft())

    def __len__(self) -> int:
        return len(self._references)
