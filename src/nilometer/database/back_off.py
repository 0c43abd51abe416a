"""When a query that has failed is tried again: soon at first, then later and later."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000


@dataclass(frozen=True)
class BackOff:
    """Waits that double; microseconds."""

    first: int = SECOND
    most: int = 60 * SECOND
    good_after: int = 60 * SECOND
    """After so long a run in which something was done, earlier failures count no more."""

    def wait(self, failures: int, chance: float) -> int:
        """How long to wait after so many failures in a row.

        `chance` (from 0 to 1) makes it up to a half shorter, so that queries that failed
        together are not tried together.

        >>> [BackOff().wait(n, 1.0) // SECOND for n in (1, 2, 3, 6, 7, 1000)]
        [1, 2, 4, 32, 60, 60]
        """
        longest = min(self.most, self.first << min(failures - 1, 40))
        return longest // 2 + int(chance * (longest - longest // 2))
