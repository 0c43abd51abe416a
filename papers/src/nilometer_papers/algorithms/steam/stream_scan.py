"""StreamScan as a plan operator (STEAM section 4, Figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nilometer.errors import InputError
from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.m_tuple import one_tuple
from nilometer_papers.algorithms.steam.plan_operator import END, PlanOperator, Pulled
from nilometer_papers.algorithms.steam.source import Source
from nilometer_papers.algorithms.steam.stream_manager import StreamManager
from nilometer_papers.algorithms.steam.streams_queue import StreamsQueue


class SensorRow(NamedTuple):
    """A row of a sensor table: what is known about a sensor, and its stream."""

    static: tuple[Any, ...]
    source: Source


class StreamScan(PlanOperator):
    """Registers the sensors selected by a predicate on static values, and returns their tuples.

    All of them share one queue. If it is empty, the scan returns a NULL tuple.
    """

    def __init__(
        self,
        manager: StreamManager,
        sensors: Sequence[SensorRow],
        chosen: Callable[[tuple[Any, ...]], bool] = lambda _: True,
    ) -> None:
        super().__init__()
        self._manager = manager
        self._sensors = sensors
        self._chosen = chosen
        self._queue: StreamsQueue | None = None
        self.time = EARLIEST

    def open(self) -> None:
        """The InitialScan, which selects sensors and registers their streams."""
        self._queue = self._manager.create_streams_queue()
        for static, source in self._sensors:
            if self._chosen(static):
                self._manager.register(source, self._queue)

    def pull(self) -> Pulled:
        queue = self.queue
        one = queue.take()
        if one is None:
            return None if queue.attached else END
        self.time = max(self.time, one.time)
        return one_tuple(one)

    def close(self) -> None:
        """Unregister all streams, and flush the queue."""
        self._manager.unregister(self.queue)
        self._queue = None

    @property
    def queue(self) -> StreamsQueue:
        """The tuples waiting to be pulled."""
        if self._queue is None:
            raise InputError("the scan is not open", hint="call open() first")
        return self._queue

    @property
    def newest(self) -> Sequence[int]:
        return (self.time,)
