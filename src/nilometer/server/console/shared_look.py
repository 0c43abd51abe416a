"""One look at the sensor network for all pages that show it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nilometer.server.console.access import Console
from nilometer.server.console.sensor_network import SensorNetwork, build_network

_FRESH: Final = 1.35
"""For so many seconds a look is good."""


class SharedLook:
    """The network as it was a moment ago, the same for all who look: many pages cost as one."""

    def __init__(self, console: Console) -> None:
        self._service = console.service
        self._lock = asyncio.Lock()
        self._until = 0.0
        self._network = SensorNetwork((), (), (), {})

    def forget(self) -> None:
        """Look again, however new the last look is: something was changed."""
        self._until = 0.0

    async def network(self) -> SensorNetwork:
        """What is there and how it is doing."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._network = await self._look()
                self._until = time.monotonic() + _FRESH
        return self._network

    async def _look(self) -> SensorNetwork:
        service = self._service
        return build_network(
            await service.declarations(),
            await service.sensors(),
            await service.streams(),
            await service.queries(),
            await service.deliveries(),
        )
