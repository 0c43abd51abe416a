"""How fast logs grow, and when there will be no room: from rows appended, and bytes that rows take.

Bytes alone would not tell: they get fewer when segments are packed or deleted.
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
"""Two looks tell nothing that are not so far (microseconds) apart."""


@dataclass
class Growth:
    """How many rows a log got, as seen now and then, for a day."""

    _seen: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def see(self, now: int, rows: int) -> None:
        """So many rows the log has ever had, at this instant (microseconds)."""
        if self._seen and (rows < self._seen[-1][1] or now <= self._seen[-1][0]):
            self._seen.clear()  # it is another log now, or the clock was set
        self._seen.append((now, rows))
        while now - self._seen[0][0] > DAY:
            self._seen.popleft()

    @property
    def rows_per_second(self) -> float | None:
        """Over all that was seen; None: that is too little."""
        if len(self._seen) < 2 or self._seen[-1][0] - self._seen[0][0] < _ENOUGH:
            return None
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) * 1e6 / (ended - began)


@dataclass(frozen=True)
class LogUse:
    """What a log takes, may take, and gets."""

    name: str
    kind: str
    bytes: int
    limit: int | None
    history: int
    """For how long rows are kept that were read (microseconds)."""
    rate: float | None
    """Bytes per second; None: not known yet."""

    @property
    def most(self) -> float:
        """What it will take at most, as it goes at present."""
        kept = float("inf") if self.history >= FOREVER else (self.rate or 0.0) * self.history / 1e6
        return max(float(self.bytes), min(kept, float("inf") if self.limit is None else self.limit))

    @property
    def seconds_left(self) -> float | None:
        """Until its limit is reached; None: never, or not known."""
        if self.limit is None or not self.rate or self.most < self.limit:
            return None
        return max(0.0, (self.limit - self.bytes) / self.rate)


def seconds_until_full(uses: Iterable[LogUse], free: int) -> float | None:
    """Until logs have taken all that is free; None: they never do as they go at present.

    A log grows at its rate until it takes the most that it will take.
    """
    growing = [(one.rate, one.most - one.bytes) for one in uses if one.rate]
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
