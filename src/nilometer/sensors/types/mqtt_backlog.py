"""Which messages of a session the broker had kept while nobody listened.

MQTT does not tell. A broker sends what it has kept at once, as fast as it is taken: so that is
what comes in the first second of a connection that found its session, and in those that follow
for as long as each of them brings many.
"""

from __future__ import annotations

from typing import Final

MANY: Final = 50
"""A second that brings fewer messages ends the backlog."""
LONGEST: Final = 120
"""After so many seconds what comes is new, however much it is."""


class Backlog:
    """Judges the messages of one connection after the other; times are seconds of any clock."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._second = 0
        self._count = 0

    def connected(self, now: float, *, session: bool) -> None:
        """A connection was made; `session`: the broker may have kept something."""
        self._began = now if session else None
        self._second = self._count = 0

    def takes(self, now: float) -> bool:
        """Whether a message that comes now is one that was kept."""
        if self._began is None:
            return False
        second = int(now - self._began)
        if second != self._second:
            if second > self._second + 1 or self._count < MANY or second >= LONGEST:
                self._began = None
                return False
            self._second, self._count = second, 0
        self._count += 1
        return True
