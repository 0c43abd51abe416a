"""When the ripple join and XJoin clean their buffers (TR-010 section 4.3)."""

from __future__ import annotations

from typing import Final

EVERY: Final = 10_000
"""The number of tuples between two cleanups, in TR-010."""


class Cleanup:
    """Says when to clean: once in this many tuples."""

    def __init__(self, every: int) -> None:
        self._every = every
        self.since = 0
        """The number of tuples since the last cleanup."""

    def due(self) -> bool:
        """Count one tuple; return whether it is time to clean."""
        self.since += 1
        if self.since < self._every:
            return False
        self.since = 0
        return True
