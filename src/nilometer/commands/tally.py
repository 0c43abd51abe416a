"""The progress of a followed query, added up from its reports."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nilometer.operators.metrics import JoinMetrics


class Tally:
    """Adds up the micro-batches of a query."""

    def __init__(self) -> None:
        self.rows_in = 0
        self.rows_out = 0
        self.batches = 0
        self._joins: list[JoinMetrics] = []
        self.rate = 0.0
        """Rows that currently arrive per second."""
        self._started = time.monotonic()

    def add(self, joins: list[JoinMetrics], rows_out: int) -> None:
        """Add a micro-batch."""
        self._joins = joins
        self.batches += 1
        streams = (stream for join in joins for stream in join.streams.values())
        self.rows_in += sum(stream.rows for stream in streams if not stream.is_internal)
        self.rows_out += rows_out

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def late(self) -> int:
        return sum(join.streams[name].late for join, name in self._streams())

    @property
    def without_time(self) -> int:
        return sum(join.streams[name].without_time for join, name in self._streams())

    def line(self, now: int) -> str:
        """The current state, in one line, at an instant in microseconds."""
        if not self.batches:
            return "Preparing the first micro-batch"
        parts = [
            f"{self.rows_in:,} rows in ({self.rate:,.0f}/s)",
            f"{self.rows_out:,} out",
            f"{self.late:,} late",
        ]
        if (lag := self._lag(now)) is not None:
            parts.append(f"watermark {span(lag)} behind")
        return ", ".join(parts)

    def summary(self) -> str:
        """The whole run in one line."""
        parts = [
            f"rows in: {self.rows_in:,}",
            f"rows out: {self.rows_out:,}",
            f"late rows dropped: {self.late:,}",
        ]
        if self.without_time:
            parts.append(f"rows without a time dropped: {self.without_time:,}")
        return ", ".join([*parts, f"seconds: {self.seconds:.1f}"])

    def _streams(self) -> Iterator[tuple[JoinMetrics, str]]:
        for join in self._joins:
            for name in join.streams:
                yield join, name

    def _lag(self, now: int) -> int | None:
        marks = [join.streams[name].watermark for join, name in self._streams()]
        known = [mark for mark in marks if mark is not None]
        return now - min(known) if known else None


def span(microseconds: int) -> str:
    """A duration in readable form.

    >>> span(3_200_000), span(7_500_000_000), span(-1_000_000)
    ('3.2 s', '2.1 h', '-1.0 s')
    """
    seconds = microseconds / 1e6
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
