"""When the ripple join and XJoin clean their buffers (TR-010 section 4.3)."""

from __future__ import annotations

from typing import Final

EVERY: Final = 10_000
"""After how many tuples, in TR-010."""


class Cleanup:
    """Says after every so many tuples that it is time to clean."""

    def __init__(self, every: int) -> None:
        self._every = every
        self.since = 0
        """How many tuples came since the last time."""

    def due(self) -> bool:
        """Count one tuple; whether it is time."""
        self.since += 1
        if self.since < self._every:
            return False
        self.since = 0
        return True
