"""What a pipeline has done, and how long its answers took."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nilometer.model.time import EARLIEST
from nilometer.operators.change_operator import times_of


@dataclass
class OperatorCounts:
    """What one operator has done."""

    name: str
    calls: int = 0
    rows_in: int = 0
    """Tuples that it processed: new ones, negative ones, and those that it expired."""
    rows_out: int = 0
    probes: int = 0
    """How often it was asked for its time."""
    longest_queue: int = 0


@dataclass
class ResponseTimes:
    """How long after it takes effect a change came out (microseconds)."""

    changes: int = 0
    total: int = 0
    maximum: int = 0

    @property
    def average(self) -> float:
        return self.total / self.changes if self.changes else 0.0

    def add(self, changes: pa.RecordBatch, clock: int) -> None:
        """Count changes that come out at a time of the clock; not what holds since ever."""
        times = times_of(changes)
        delays = clock - times[times > EARLIEST]
        if len(delays):
            self.changes += len(delays)
            self.total += int(delays.sum())
            self.maximum = max(self.maximum, int(delays.max()))


@dataclass(frozen=True)
class PipelineStatistics:
    """A pipeline so far."""

    operators: tuple[OperatorCounts, ...]
    """From scans to the answer."""
    response: ResponseTimes
    negative_rows: int
    """Negative tuples that scans have sent."""
    late: int
    """Tuples dropped because they were late."""
    without_time: int
    queued: int
    """Messages that wait now."""
    elapsed: int
    """Microseconds of the clock since the start."""

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.operators)

    @property
    def rows_processed(self) -> int:
        return sum(one.rows_in for one in self.operators)

    @property
    def probes(self) -> int:
        return sum(one.probes for one in self.operators)

    @property
    def longest_queue(self) -> int:
        return max(one.longest_queue for one in self.operators)

    @property
    def throughput(self) -> float:
        """Changes that came out per second of the clock, without those of the end."""
        return self.response.changes * 1e6 / self.elapsed if self.elapsed else 0.0

    def of(self, name: str) -> OperatorCounts:
        """The counts of the operator of a name."""
        return next(one for one in self.operators if one.name == name)
