"""Ensures that only one database at a time holds a catalog that several machines can reach.

A folder, and a catalog in a file, is held by a lock of this machine. A catalog in PostgreSQL is
held by a lease: taken with a time, renewed long before that is over, and lost if it cannot be
renewed, or another database holds it. A holder that has lost it unawares (a machine that slept) can
change nothing any more: every transaction of the catalog checks the holder.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from nilometer.errors import InputError, NilometerError, in_one_line
from nilometer.model.time import format_instant
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_lease import LeaseHolder

SECONDS: Final = 60.0
"""How long a lease lasts, and so how long the catalog may be out of reach."""
_RENEWALS: Final = 6
"""How often it is renewed in that time."""


class Lease:
    """Holds a catalog until it is closed; reports if it is lost before."""

    def __init__(
        self,
        catalog: SensorCatalog,
        holder: str,
        lost: Callable[[NilometerError], None],
        seconds: float = SECONDS,
    ) -> None:
        """`holder`: the identity of the database; raises InputError if another one holds it."""
        self._catalog = catalog
        self._holder = holder
        self._told = f"process {os.getpid()} of {socket.gethostname()}"
        self._lost = lost
        self._seconds = seconds
        self._taken = _ticks()
        self._problem: str | None = None
        other = self._take()
        if other is not None:
            raise InputError(
                "the catalog is in use",
                detail=f"{other.description} holds it until {format_instant(other.until)} UTC, "
                "and renews it while it runs",
                hint="close that one first; if it has ended without closing it, wait until then",
            )
        self._closing = threading.Event()
        self._is_lost = threading.Lock()
        works = (self._renew, self._watch)
        self._threads = [threading.Thread(target=one, name="lease", daemon=True) for one in works]
        for one in self._threads:
            one.start()

    def close(self) -> None:
        """Release the catalog."""
        self._closing.set()
        self._threads[1].join()
        self._threads[0].join(self._seconds / _RENEWALS)  # it may wait for an unreachable server
        self._catalog.release_lease(self._holder)

    def _take(self) -> LeaseHolder | None:
        began = _ticks()
        other = self._catalog.take_lease(self._holder, self._told, int(self._seconds * 1_000_000))
        if other is None:
            self._taken = began
        return other

    def _renew(self) -> None:
        while not self._closing.wait(self._seconds / _RENEWALS):
            try:
                other = self._take()
            except Exception as error:  # `_watch` checks whether that lasts
                self._problem = in_one_line(error)
            else:
                if other is not None:
                    self._lose(
                        "another database holds its catalog",
                        f"{other.description} has taken it over",
                    )
                    return

    def _watch(self) -> None:
        """Report a loss before another database can take the lease, even if a renewal hangs."""
        every = self._seconds / _RENEWALS
        while not self._closing.wait(every / 4):
            if _ticks() - self._taken > self._seconds - 2 * every:
                self._lose("its catalog cannot be reached", self._problem)
                return

    def _lose(self, why: str, detail: str | None) -> None:
        if self._is_lost.acquire(blocking=False):
            self._closing.set()
            hint = (
                "only one database at a time can hold a catalog; when reopened, its queries resume"
            )
            self._lost(InputError(f"the database was closed: {why}", detail=detail, hint=hint))


def _ticks() -> float:
    """Seconds, including those in which the machine sleeps: others do not wait for it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
