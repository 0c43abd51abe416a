"""What one sensor subscribes to, and what has arrived for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nilometer.sensors.types.mqtt_deliveries import Delivery
from nilometer.sensors.types.mqtt_packets import Publish

_MOST_UNREAD: Final = 10_000
"""The maximum number of unread messages with QoS 0 of a sensor."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message for one sensor."""

    topic: str
    payload: bytes
    cut: bool
    key: bytes | None
    stored: Callable[[], None] | None
    properties: bytes
    queued: bool
    """Whether the broker had kept it while nobody was listening."""


class Subscription:
    """What one sensor subscribes to, and what has arrived for it."""

    def __init__(self, topic_filter: str, *, retained: bool, delivered: frozenset[bytes]) -> None:
        self.filter = topic_filter
        self.retained = retained
        self.delivered = set(delivered)
        self.duplicates = 0
        self.dropped = 0
        self.unread: deque[tuple[Publish, bool, Delivery | None]] = deque()
        self.failure: Exception | None = None
        self._arrived = asyncio.Event()

    def put(self, message: Publish, cut: bool, delivery: Delivery | None) -> None:
        """Add a message; with QoS 0 the oldest is dropped if nobody reads."""
        if delivery is None and len(self.unread) >= _MOST_UNREAD:
            self.unread.popleft()
            self.dropped += 1
        self.unread.append((message, cut, delivery))
        self._arrived.set()

    def fail(self, error: Exception) -> None:
        self.failure = error
        self._arrived.set()

    async def wait(self) -> None:
        """Return when a message is unread; raises once the connection is lost."""
        while not self.unread:
            if self.failure is not None:
                raise self.failure
            self._arrived.clear()
            await self._arrived.wait()
