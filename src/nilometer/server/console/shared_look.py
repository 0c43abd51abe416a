"""One snapshot of the sensor network for all pages that show it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nilometer.server.console.access import Console
from nilometer.server.console.sensor_network import SensorNetwork, build_network

_FRESH: Final = 1.35
"""For how many seconds a snapshot is fresh."""


class SharedLook:
    """The network as of a moment ago, shared by all viewers: many pages cost as much as one."""

    def __init__(self, console: Console) -> None:
        self._service = console.service
        self._lock = asyncio.Lock()
        self._until = 0.0
        self._network = SensorNetwork((), (), (), {})

    def forget(self) -> None:
        """Read it again next time, however fresh it is: something was changed."""
        self._until = 0.0

    async def network(self) -> SensorNetwork:
        """What there is, and how it is doing."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._network = await self._look()
                self._until = time.monotonic() + _FRESH
        return self._network

    async def _look(self) -> SensorNetwork:
        service = self._service
        return build_network(
            await service.streams.declarations(),
            await service.streams.sensors(),
            await service.streams.all(),
            await service.queries.all(),
            await service.deliveries(),
        )
