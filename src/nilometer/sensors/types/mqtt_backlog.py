"""Which messages of a session the broker had kept while nobody was listening.

MQTT does not say. A broker sends what it has kept at once, as fast as it is read: so the backlog is
what arrives in the first second of a connection that resumed its session, and in the following
seconds for as long as each of them brings many.
"""

from __future__ import annotations

from typing import Final

MANY: Final = 50
"""A second that brings fewer messages ends the backlog."""
LONGEST: Final = 120
"""After this many seconds, what arrives is new, however much it is."""


class Backlog:
    """Judges the messages of one connection in order; times are seconds of any clock."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._second = 0
        self._count = 0

    def connected(self, now: float, *, session: bool) -> None:
        """Note a new connection; `session`: the broker may have kept messages."""
        self._began = now if session else None
        self._second = self._count = 0

    def takes(self, now: float) -> bool:
        """Whether a message that arrives now had been kept."""
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
