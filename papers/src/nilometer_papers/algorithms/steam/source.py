"""Streams for the stream manager: InitStream, ReadStream, CloseStream (STEAM section 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple, Protocol

from nilometer_papers.algorithms.stream_tuple import StreamTuple


class Status(Enum):
    """The status that ReadStream returns."""

    NEW_VALUE = "STREAM_NEW_VALUE"
    NO_VALUE = "STREAM_NO_VALUE"
    END = "STREAM_END"


class Reading(NamedTuple):
    """What a stream returns when it is polled."""

    status: Status
    value: StreamTuple | None = None


class Source(Protocol):
    """A stream that can be polled."""

    def init_stream(self) -> None:
        """Begin."""

    def read_stream(self) -> Reading:
        """What is new, without waiting."""

    def close_stream(self) -> None:
        """End."""


class TimedSource:
    """Tuples of one stream that come when a clock reaches their times, and then its end."""

    def __init__(self, tuples: Iterable[StreamTuple], clock: Callable[[], float]) -> None:
        self._rest = deque(tuples)
        self._clock = clock

    @property
    def due(self) -> int | None:
        """When the next tuple comes; None if there is none."""
        return self._rest[0].time if self._rest else None

    def init_stream(self) -> None:
        """There is nothing to prepare."""

    def read_stream(self) -> Reading:
        if not self._rest:
            return Reading(Status.END)
        if self._rest[0].time > self._clock():
            return Reading(Status.NO_VALUE)
        return Reading(Status.NEW_VALUE, self._rest.popleft())

    def close_stream(self) -> None:
        self._rest.clear()
