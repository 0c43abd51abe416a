"""Who is reading a log, and therefore which of its sensors are needed."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Set
from pathlib import Path
from typing import Final

from nilometer.log.registrations import (
    WHERE,
    Registration,
    forget,
    is_running,
    registrations,
)
from nilometer.sensors.manager.settings import ManagerSettings

_SAME_STAMP: Final = 100_000_000
"""Changes within this many nanoseconds may leave a folder with the same timestamp."""


def is_alive(reader: Registration, now: int, settings: ManagerSettings) -> bool:
    """Whether a reader is alive: its process lives or, elsewhere, it was seen recently."""
    if reader.active and reader.host != socket.gethostname():
        return now - reader.seen < settings.reader_seen
    return is_running(reader)


def live_conditions(readers: list[Registration]) -> Set[str | None]:
    """The distinct conditions of readers."""
    return {reader.about.get(WHERE) for reader in readers}


class Readers:
    """The readers of one log, read again only when their files have changed."""

    def __init__(self, location: str, settings: ManagerSettings, clock: Callable[[], int]) -> None:
        self._location = location
        self._folder = None if "://" in location else Path(location) / "readers"
        self._settings = settings
        self._clock = clock
        self._stamp: int | None = None
        self._known: list[Registration] = []
        self.lost = False
        """Whether a named reader disappeared without deregistering: it may return and resume."""

    async def look(self) -> list[Registration]:
        """The same as `alive`, without blocking the loop while a remote store is asked."""
        return self.alive() if self._folder is not None else await asyncio.to_thread(self.alive)

    def alive(self) -> list[Registration]:
        """The readers that are alive; unnamed ones not seen for a long time are forgotten."""
        now = self._clock()
        stamp = self._stamp_now()
        if stamp is None or stamp != self._stamp:
            self._known, self._stamp = registrations(self._location), stamp
        alive, self.lost = [], False
        for reader in self._known:
            if is_alive(reader, now, self._settings):
                alive.append(reader)
            elif reader.named:
                self.lost |= reader.active
            elif now - reader.seen > self._settings.forget_after:
                forget(self._location, reader.reader)
        return alive

    def _stamp_now(self) -> int | None:
        """A stamp that changes with the readers' files; None: unknown."""
        if self._folder is None:
            return None
        try:
            stamp = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
        return stamp if time.time_ns() - stamp > _SAME_STAMP else None
