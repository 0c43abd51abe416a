"""MW-join: the merge join of streams under one window, in two modes (TR-010 section 3.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved, singles
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class MWJoin(JoinAlgorithm):
    """Sweeps to where the streams meet (Mode 1), and joins there without tests of time (Mode 2).

    Mode 1 drops tuples until the first ones of all streams, the starting tuples, are in one period:
    everything within the window of each of them. Mode 2 admits to the buffers what follows them in
    the period; so everything buffered lies in the window after the oldest of them. A tuple waits in
    the queue of its stream until it is admitted or dropped.
    """

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task)
        self._streams = task.streams
        self._windows = self._windows_of_streams()
        self._buffers: Sequence[deque[StreamTuple]] = [
            self._new_buffer() for _ in range(task.streams)
        ]
        self._waiting: list[deque[StreamTuple]] = [deque() for _ in range(task.streams)]
        self._reached = [EARLIEST] * task.streams
        """The time before which a stream delivers nothing more."""
        self._low, self._high = EARLIEST, FOREVER
        """The first and the last instant of the period."""
        self._included = 0
        """How many streams have their first tuple in the period; with all of them it is Mode 2."""
        self._sweeping = 0
        """The stream whose first tuple Mode 1 must check next."""

    def process(self, arrival: StreamTuple) -> list[Result]:
        stream = arrival.stream
        self.counters.tuples += 1
        self._reached[stream] = arrival.time
        waiting = self._waiting[stream]
        if waiting:
            # the tuple before it is not admitted yet, so nothing changes
            waiting.append(arrival)
            return []
        if self._included == self._streams:
            self.counters.time_tests += 1
            if arrival.time <= self._high:
                results = self._admit(arrival)
                self.counters.results += len(results)
                return results
        waiting.append(arrival)
        return self._go_on(stream)

    def reach(self, stream: int, time: int) -> list[Result]:
        self._reached[stream] = max(self._reached[stream], time)
        if self._waiting[stream]:
            return []
        results = self._go_on(stream)
        if self._included < self._streams:
            self._drop_out_of_reach()
        return results

    def save(self) -> Saved:
        tables = {str(i): singles(buffer) for i, buffer in enumerate(self._buffers)}
        tables |= {f"waiting {i}": singles(waiting) for i, waiting in enumerate(self._waiting)}
        numbers = {
            "reached": list(self._reached),
            "period": [self._low, self._high],
            "sweep": [self._included, self._sweeping],
        }
        return Saved(tables, numbers)

    def load(self, saved: Saved) -> None:
        for i in range(self._streams):
            for (one,) in saved.tables[str(i)]:
                self._buffers[i].append(one)
            self._waiting[i].extend(one for (one,) in saved.tables[f"waiting {i}"])
        self._reached = list(saved.numbers["reached"])
        self._low, self._high = saved.numbers["period"]
        self._included, self._sweeping = saved.numbers["sweep"]

    def _go_on(self, stream: int) -> list[Result]:
        """Change modes as often as the first tuples of all streams allow; one has news."""
        streams, results = self._streams, list[Result]()
        if self._included < streams and stream == self._sweeping:
            self._mode_1()
            results += self._mode_2()
        while self._included == streams and self._all_are_right_of_period():
            self._drop_whose_window_ends()
            self._mode_1()
            results += self._mode_2()
        self.counters.results += len(results)
        return results

    def _all_are_right_of_period(self) -> bool:
        """Whether no stream delivers more for it; in Mode 2 waiting tuples are after it."""
        return all(
            reached > self._high
            for waiting, reached in zip(self._waiting, self._reached, strict=True)
            if not waiting
        )

    def _drop_whose_window_ends(self) -> None:
        """Leave Mode 2: no later tuple can join the starting tuple that ends the period."""
        both = zip(self._buffers, self._windows, strict=True)
        ends = [buffer[0].time + window for buffer, window in both]
        stream = ends.index(self._high)
        self._buffers[stream].popleft()
        self.counters.removed += 1
        self._included, self._sweeping = 0, stream
        self._low, self._high = EARLIEST, FOREVER

    def _mode_1(self) -> None:
        """Sweep until the first tuples of all streams are in one period, or one is missing."""
        streams, window, counters = self._streams, self._windows[0], self.counters
        stream, included, low, high = self._sweeping, self._included, self._low, self._high
        while included < streams:
            line = self._buffers[stream] or self._waiting[stream]
            # the next tuple of a silent stream is not earlier than what the stream has reached
            time = line[0].time if line else self._reached[stream]
            counters.time_tests += 2
            if time < low and line:
                line.popleft()
                counters.removed += 1
                continue
            if time > high:
                included, low = int(bool(line)), time - window
                high = time + window if line else FOREVER
            elif line:
                included += 1
                low, high = max(low, time - window), min(high, time + window)
            else:
                break
            stream = (stream + 1) % streams
        self._sweeping, self._included, self._low, self._high = stream, included, low, high

    def _drop_out_of_reach(self) -> None:
        """Drop what is too old for everything that the stream awaited by Mode 1 can still deliver.

        The sweep would drop it, too, but not before that stream delivers a tuple, if it ever does.
        """
        reached, own = self._reached[self._sweeping], self._windows[self._sweeping]
        for i, window in enumerate(self._windows):
            oldest = reached - min(own, window)
            for line in (self._buffers[i], self._waiting[i]):
                self.counters.time_tests += 1
                while line and line[0].time < oldest:
                    line.popleft()
                    self.counters.removed += 1
                    self.counters.time_tests += 1

    def _mode_2(self) -> list[Result]:
        """Join the starting tuples if Mode 1 has found them, then what waits in the period."""
        if self._included < self._streams:
            return []
        results, high = self._start(), self._high
        lines = [waiting for waiting in self._waiting if waiting]
        while lines:
            self.counters.time_tests += len(lines)
            lines = [waiting for waiting in lines if waiting[0].time <= high]
            for waiting in lines:
                results += self._admit(waiting.popleft())
            lines = [waiting for waiting in lines if waiting]
        return results

    def _start(self) -> list[Result]:
        """Buffer the new starting tuples; a result with one of them has all of them."""
        new = [i for i, buffer in enumerate(self._buffers) if not buffer]
        for i in new:
            self._buffers[i].append(self._waiting[i].popleft())
        return self._join(self._buffers[new[-1]][0]) if new else []

    def _admit(self, arrival: StreamTuple) -> list[Result]:
        self._buffers[arrival.stream].append(arrival)
        return self._join(arrival)

    def _join(self, arrival: StreamTuple) -> list[Result]:
        """Nested loops over everything that the other streams have buffered, in their order."""
        streams, start, among = self._streams, arrival.stream, self.task.condition.among
        partial: list[Result] = [(arrival,)]
        for i in range(start + 1, start + streams):
            buffer = self._buffers[i % streams]
            self.counters.value_tests += len(partial) * len(buffer)
            partial = [(*members, one) for members in partial for one in among(members, buffer)]
            if not partial:
                return []
        turn = streams - start
        return [members[turn:] + members[:turn] for members in partial]

    def _windows_of_streams(self) -> list[int]:
        """The one window, for each stream."""
        assert self.task.window is not None
        return [self.task.window] * self.task.streams

    def _new_buffer(self) -> deque[StreamTuple]:
        return deque()
