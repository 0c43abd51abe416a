"""StreamScan, with W-Expire in it (Nile sections 3.2.1 and 5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from nilometer.model.time import EARLIEST, FOREVER
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.plan_tuple import Held, PlanTuple, Values


class StreamScan(Operator):
    """Feeds the tuples of a stream into the pipeline; its time is that of the last of them.

    With a clock its time advances while nothing arrives: if the system assigns timestamps as tuples
    arrive, no future tuple is older than now.

    Under NTA it stores the tuples of the window, and at each new one it emits a negative tuple for
    every one that has expired.
    """

    def __init__(self, stream: int, window: int) -> None:
        super().__init__()
        self.stream = stream
        self.windows = (window,)
        self.arrivals: deque[tuple[int, Values]] = deque()
        self.time = EARLIEST
        self._window = window
        self._emits_negatives = False
        self._stamps = False
        self._clock: Callable[[], int] | None = None
        self._held: deque[tuple[int, Held]] = deque()
        """W-Expire's window: (the first instant without it, the tuple)."""

    def start(
        self, emits_negatives: bool, stamps: bool, clock: Callable[[], int] | None = None
    ) -> None:
        """Choose how tuples end, and whether each has the timestamp of its source."""
        self._emits_negatives = emits_negatives
        self._stamps = stamps
        self._clock = clock

    @property
    def next_end(self) -> int:
        return self._held[0][0] if self._held else FOREVER

    def probe(self) -> None:
        """Emit negative tuples for what has expired by now, even if nothing arrives."""
        if not self.arrivals:
            self.reach(self.get_time())

    @property
    def has_input(self) -> bool:
        return bool(self.arrivals)

    @property
    def stored(self) -> int:
        """How many tuples W-Expire stores."""
        return len(self._held)

    def step(self) -> bool:
        """Process one arrival."""
        if not self.arrivals:
            return False
        self.counters.tuples += 1
        time, values = self.arrivals.popleft()
        if self._emits_negatives:
            self.reach(time)
            held = Held(FOREVER, values)
            self._held.append((time + self._window + 1, held))
        else:
            self.time = time
            held = Held(time, values, (time,)) if self._stamps else Held(time, values)
        self.output.append(PlanTuple(held, time))
        return True

    def reach(self, time: int) -> None:
        """Note that the stream delivers nothing before a time any more."""
        self.time = time
        held = self._held
        while held and held[0][0] <= time:
            end, one = held.popleft()
            self.output.append(PlanTuple(one, end, -1))

    def get_time(self) -> int:
        """The time of what the next arrival will emit first, otherwise that of the last one."""
        self.counters.probes += 1
        if not self.arrivals:
            return self.time if self._clock is None else max(self.time, self._clock())
        time = self.arrivals[0][0]
        return min(time, self._held[0][0]) if self._held else time
