"""The top of a plan: calls GetNext repeatedly, on a clock that advances as work is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import thread_time_ns

from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.steam.plan_operator import End, PlanOperator, below
from nilometer_papers.algorithms.steam.source import TimedSource
from nilometer_papers.algorithms.steam.stream_manager import StreamManager
from nilometer_papers.algorithms.steam.streams_queue import MemoryQueue, StreamsQueue
from nilometer_papers.algorithms.stream_tuple import StreamTuple


class Clock:
    """Microseconds; advances by what a meter (nanoseconds) shows, and jumps when all is idle."""

    def __init__(self, meter: Callable[[], int] = thread_time_ns) -> None:
        self.now = 0.0
        self._meter = meter
        self._seen = meter()

    def __call__(self) -> float:
        """The current time."""
        seen = self._meter()
        self.now += (seen - self._seen) / 1000
        self._seen = seen
        return self.now

    def forget(self) -> None:
        """Discard the time that has passed since it was last read."""
        self._seen = self._meter()

    def jump(self, time: float) -> None:
        """Advance to this time, if it is later than now."""
        self.now = max(self(), time)


class Executor:
    """Runs a plan over streams whose tuples come at their times.

    The stream manager's work does not count: it has its own thread.
    """

    def __init__(
        self,
        streams: Sequence[Sequence[StreamTuple]],
        clock: Clock,
        make_queue: Callable[[], StreamsQueue] = MemoryQueue,
    ) -> None:
        self.clock = clock
        self.manager = StreamManager(make_queue)
        self.sources = [TimedSource(one, lambda: clock.now) for one in streams]

    def run(self, root: PlanOperator) -> list[tuple[float, MTuple]]:
        """All results of a plan, each with the clock's time at which it came out."""
        operators, results = below(root), []
        root.open()
        self.clock.forget()
        emitted = -1
        while True:
            self.take_in()
            pulled = root.get_next()
            if isinstance(pulled, End):
                break
            if pulled is not None:
                results.append((self.clock(), pulled))
                continue
            before, emitted = emitted, sum(one.emitted for one in operators)
            if emitted == before:
                self.wait()
        root.close()
        return results

    def wait(self) -> None:
        """Let the clock jump to the next arrival, and take in what has come."""
        times = [one.due for one in self.sources]
        self.clock.jump(min((time for time in times if time is not None), default=0.0))
        self.take_in()

    def take_in(self) -> None:
        """Let the stream manager read all that has come, as its thread would have."""
        self.clock()
        while self.manager.poll():
            pass
        self.clock.forget()
