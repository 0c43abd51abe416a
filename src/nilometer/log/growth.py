"""How fast logs grow, and when there will be no room: by rows appended, and bytes per row.

Bytes alone would mislead: they shrink when segments are packed or deleted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from nilometer.model.time import FOREVER

DAY: Final = 86_400_000_000
_SAMPLES: Final = 24 * 60
_ENOUGH: Final = 10_000_000
"""Two observations less than this (microseconds) apart are not enough."""


@dataclass
class Growth:
    """How many rows a log got, as observed from time to time over a day."""

    _seen: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def see(self, now: int, rows: int) -> None:
        """Note how many rows the log has ever had at this instant (microseconds)."""
        if self._seen and (rows < self._seen[-1][1] or now <= self._seen[-1][0]):
            self._seen.clear()  # it is another log now, or the clock was set
        self._seen.append((now, rows))
        while now - self._seen[0][0] > DAY:
            self._seen.popleft()

    @property
    def rows_per_second(self) -> float | None:
        """The rate over all observations; None: there are too few."""
        if len(self._seen) < 2 or self._seen[-1][0] - self._seen[0][0] < _ENOUGH:
            return None
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) * 1e6 / (ended - began)


@dataclass(frozen=True)
class LogUse:
    """What a log takes, may take, and receives."""

    name: str
    kind: str
    bytes: int
    limit: int | None
    history: int
    """How long rows are kept after they were read (microseconds)."""
    rate: float | None
    """Bytes per second; None: not known yet."""

    @property
    def peak(self) -> float:
        """The most that it will take at its present rate."""
        without_end = self.history >= FOREVER
        growth = float("inf") if without_end else (self.rate or 0.0) * self.history / 1e6
        limit = float("inf") if self.limit is None else self.limit
        return max(float(self.bytes), min(growth, limit))

    @property
    def seconds_left(self) -> float | None:
        """Seconds until its limit is reached; None: never, or not known."""
        if self.limit is None or not self.rate or self.peak < self.limit:
            return None
        return max(0.0, (self.limit - self.bytes) / self.rate)


def seconds_until_full(uses: Iterable[LogUse], free: int) -> float | None:
    """Seconds until logs have used up the free space; None: never at their present rates.

    A log grows at its rate until it takes the most that it will take.
    """
    growing = [(one.rate, one.peak - one.bytes) for one in uses if one.rate]
    passed, left = 0.0, float(free)
    for rate, more in sorted(growing, key=lambda one: one[1] / one[0]):
        total = sum(r for r, m in growing if m / r > passed)
        until = more / rate
        if total <= 0 or until <= passed:
            continue
        if total * (until - passed) >= left:
            return passed + left / total
        left -= total * (until - passed)
        passed = until
    return None
