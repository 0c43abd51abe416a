"""When a failed query is retried: soon at first, then with growing delays."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000


@dataclass(frozen=True)
class BackOff:
    """Delays that double, in microseconds."""

    first: int = SECOND
    longest: int = 60 * SECOND
    good_after: int = 60 * SECOND
    """After a run of this length that made progress, earlier failures no longer count."""

    def wait(self, failures: int, chance: float) -> int:
        """How long to wait after this many consecutive failures.

        `chance` (from 0 to 1) shortens it by up to half, so that queries that failed
        together are not retried together.

        >>> [BackOff().wait(n, 1.0) // SECOND for n in (1, 2, 3, 6, 7, 1000)]
        [1, 2, 4, 32, 60, 60]
        """
        pause = min(self.longest, self.first << min(failures - 1, 40))
        return pause // 2 + int(chance * (pause - pause // 2))
